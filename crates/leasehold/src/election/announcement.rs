//! The record that a leader writes next to its lock.

use std::fmt;

use crate::env::clock::WallTime;
use crate::types::{Error, ErrorKind, Owner};

/// The leader and the value that it publishes: the content of the record.
///
/// The first line is `leader/1 <owner> <since>`; the value follows it. The line names the attempt, so the
/// announcement counts only for the client that holds the lock by that attempt. A leader that resigned
/// leaves a record without content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(super) owner: Owner,
    pub(super) since: WallTime,
    pub(super) value: String,
}

/// The first word: the kind of the record and its version.
const KIND: &str = "leader/1";

impl Announcement {
    /// The maximum size of the value, in bytes.
    pub(super) const VALUE_MAX: usize = 4096;

    /// Reads what a leader wrote; `None` if the leader withdrew it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] if no leader wrote the record: it is damaged, or belongs to another recipe or
    /// version.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, Error> {
        if bytes.is_empty() {
            return Ok(None);
        }
        Self::parse(bytes).map(Some).ok_or_else(|| {
            let text = "the record beside the lock is no leader's: it is damaged, or the name is used \
                        for something else too";
            Error::new(ErrorKind::Corrupt, text)
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, value) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
        let mut words = head.split(' ');
        if words.next()? != KIND {
            return None;
        }
        let announcement = Self {
            owner: words.next()?.parse().ok()?,
            since: WallTime::from_micros(words.next()?.parse().ok()?),
            value: value.to_owned(),
        };
        words.next().is_none().then_some(announcement)
    }
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.as_micros();
        write!(f, "{KIND} {} {since}\n{}", self.owner, self.value)
    }
}

pub(super) fn check_value(value: &str) -> Result<(), Error> {
    if value.len() <= Announcement::VALUE_MAX {
        return Ok(());
    }
    let text = format!(
        "the value has {} bytes; the maximum is {}",
        value.len(),
        Announcement::VALUE_MAX
    );
    Err(Error::new(ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SystemEntropy;
    use crate::types::ClientId;

    fn announcement(value: &str) -> Announcement {
        Announcement {
            owner: Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy),
            since: WallTime::from_micros(1_795_000_000_000_003),
            value: value.into(),
        }
    }

    #[test]
    fn it_survives_its_text_form() {
        for value in ["", "10.0.0.7:8080", "two\nlines\n", "leader/1 x", "Zürich"] {
            let announcement = announcement(value);
            let read = Announcement::read(announcement.to_string().as_bytes()).unwrap();
            assert_eq!(read, Some(announcement));
        }
        assert_eq!(Announcement::read(b"").unwrap(), None);
    }

    #[test]
    fn nothing_else_is_taken_for_one() {
        let good = announcement("value").to_string();
        let line_end = good.find('\n').unwrap();
        for damaged in [
            "\n",
            "once/1 x",
            &good[..line_end],
            &good[1..],
            &good.replacen("leader/1", "leader/2", 1),
            &good.replacen(' ', "  ", 1),
            &good.replacen("3\n", "3 4\n", 1),
            &good.replacen("3\n", "three\n", 1),
            &good.replacen(" 1795", "\n1795", 1),
            &good.replacen('.', "", 1),
        ] {
            let error = Announcement::read(damaged.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{damaged:?}");
        }
        assert!(Announcement::read(b"leader/1 \xff").is_err());
    }
}
