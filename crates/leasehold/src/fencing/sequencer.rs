use std::fmt;
use std::str::FromStr;

use crate::types::{Error, ErrorKind, Fence, Key, Mode, Permits};

/// Proof of a grant that a holder passes to others: the name of the lock, its mode, and the fence.
///
/// The holder attaches it to its requests. A server that has no place for fences asks the store with
/// [`Client::check`](crate::Client::check) whether the grant is still valid, or compares it with the latest sequencer that it has seen of
/// this lock: the greater fence is the later grant. The text form is `FENCE:MODE:NAME`, such as
/// `1764187000000000:exclusive:deploy`. It contains no secret: with it alone, a client cannot release the lock.
///
/// The name is that of Chubby's sequencers, which serve the same purpose.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, fencing::Sequencer, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("deploy").acquire().await?;
/// let header = guard.sequencer().to_string(); // goes along with a request
///
/// let shown: Sequencer = header.parse()?; // on the server
/// assert!(locks.check(&shown).await?);
/// guard.release().await?;
/// assert!(!locks.check(&shown).await?);
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sequencer {
    key: Key,
    mode: Mode,
    fence: Fence,
}

impl Sequencer {
    pub(crate) fn new(key: Key, mode: Mode, fence: Fence) -> Self {
        Self { key, mode, fence }
    }

    /// Returns the name of the lock.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the mode in which the lock was held when the sequencer was made.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the fence of the grant.
    pub fn fence(&self) -> Fence {
        self.fence
    }
}

impl fmt::Display for Sequencer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, mode, fence } = self;
        match mode.permits() {
            Some(permits) => write!(f, "{fence}:permit/{permits}:{key}"),
            None => write!(f, "{fence}:{mode}:{key}"),
        }
    }
}

impl FromStr for Sequencer {
    type Err = Error;

    /// Reads the text form.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the text is not `FENCE:MODE:NAME`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || {
            let rule = format!(
                "{text:?} is not a sequencer; it has the form FENCE:MODE:NAME, such as 17:exclusive:deploy"
            );
            Error::new(ErrorKind::InvalidInput, rule)
        };
        let mut parts = text.splitn(3, ':');
        let (Some(fence), Some(mode), Some(key)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(refused());
        };
        let mode = match (mode, mode.strip_prefix("permit/")) {
            ("exclusive", _) => Mode::Exclusive,
            ("shared", _) => Mode::Shared,
            (_, Some(permits)) => {
                let permits = permits.parse().map_err(|_| refused())?;
                Mode::Permit(Permits::new(permits).map_err(|_| refused())?)
            }
            _ => return Err(refused()),
        };
        Ok(Self {
            fence: fence.parse().map_err(|_| refused())?,
            key: Key::new(key)?,
            mode,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_read_back() {
        for text in [
            "17:exclusive:deploy",
            "1764187000000000:shared:a:b/c",
            "3:permit/5:pool",
        ] {
            let sequencer: Sequencer = text.parse().unwrap();
            assert_eq!(sequencer.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "17",
            "17:exclusive",
            "0:exclusive:a",
            "x:exclusive:a",
            "17:Exclusive:a",
            "17:permit:a",
            "17:permit/0:a",
            "17:permit/x:a",
            "17:exclusive:",
        ] {
            let error = text.parse::<Sequencer>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}");
        }
    }
}
