use leasehold::Mode;
use leasehold::look::Owner;
use leasehold::store::Permits;

/// What a lock key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockValue {
    /// One exclusive holder.
    Owner(Owner),
    /// Readers share the lock.
    Shared,
    /// Owners hold some of this many permits.
    Permits(Permits),
    /// The lock is free, and reserved for the head of the queue.
    Next,
    /// An operator broke the lease of this owner.
    Broken(Owner),
    /// A lock of another library: a string that this library did not write.
    Foreign,
    /// A value of this type, which is not a string.
    OtherType(String),
}

impl LockValue {
    /// Reads the value of a lock key, or the text that a script returns in its place.
    pub fn read(value: &[u8]) -> Self {
        let text = std::str::from_utf8(value).ok();
        text.and_then(Self::read_text).unwrap_or(Self::Foreign)
    }

    fn read_text(text: &str) -> Option<Self> {
        let Some(ours) = text.strip_prefix("leasehold:") else {
            return text.parse().ok().map(Self::Owner);
        };
        match ours.split_once(':') {
            None if ours == "shared" => Some(Self::Shared),
            None if ours == "next" => Some(Self::Next),
            Some(("permits", count)) => read_permits(count).map(Self::Permits),
            Some(("broken", owner)) => owner.parse().ok().map(Self::Broken),
            Some(("type", name)) => Some(Self::OtherType(name.to_owned())),
            _ => None,
        }
    }
}

/// Reads a number of permits in its canonical form.
fn read_permits(text: &str) -> Option<Permits> {
    let permits = Permits::new(text.parse().ok()?).ok()?;
    (permits.to_string() == text).then_some(permits)
}

/// Returns the entry of an owner in the queue: the owner, followed by the mark of the mode.
pub(super) fn entry(owner: Owner, mode: Mode) -> Entry {
    let mut entry = Entry {
        text: [0; ENTRY_MAX],
        length: OWNER_LENGTH,
    };
    entry.text[..OWNER_LENGTH].copy_from_slice(&owner.to_ascii());
    match mode {
        Mode::Exclusive => {}
        Mode::Shared => entry.push(b"/s"),
        Mode::Permit(permits) => {
            entry.push(b"/p");
            entry.push(permits.to_string().as_bytes());
        }
    }
    entry
}

const OWNER_LENGTH: usize = 49;
const ENTRY_MAX: usize = OWNER_LENGTH + "/p128".len();

/// The text of an entry.
#[derive(Debug)]
pub(super) struct Entry {
    text: [u8; ENTRY_MAX],
    length: usize,
}

impl Entry {
    fn push(&mut self, more: &[u8]) {
        self.text[self.length..self.length + more.len()].copy_from_slice(more);
        self.length += more.len();
    }
}

impl AsRef<[u8]> for Entry {
    fn as_ref(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

/// Reads an entry of the queue.
pub(crate) fn read_entry(text: &str) -> Option<(Owner, Mode)> {
    let (owner, mode) = match text.split_once('/') {
        None => (text, Mode::Exclusive),
        Some((owner, "s")) => (owner, Mode::Shared),
        Some((owner, mark)) => {
            let count = mark.strip_prefix('p')?;
            (owner, Mode::Permit(read_permits(count)?))
        }
    };
    Some((owner.parse().ok()?, mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

    #[test]
    fn values_of_other_libraries_are_foreign() {
        for foreign in [
            "job-1",
            "",
            "leasehold:",
            "leasehold:shares",
            "leasehold:next:7",
            "leasehold:broken:by ann",
            "leasehold:permits:",
            "leasehold:permits:+3",
            "leasehold:permits:0",
            "leasehold:permits:129",
            &OWNER.to_uppercase(),
        ] {
            let read = LockValue::read(foreign.as_bytes());
            assert_eq!(read, LockValue::Foreign, "{foreign}");
        }
        assert_eq!(LockValue::read(b"\xff\x00"), LockValue::Foreign);
    }

    #[test]
    fn own_values_are_read() {
        let owner: Owner = OWNER.parse().unwrap();
        let three = Permits::new(3).unwrap();
        for (text, value) in [
            (OWNER, LockValue::Owner(owner)),
            ("leasehold:shared", LockValue::Shared),
            ("leasehold:next", LockValue::Next),
            ("leasehold:permits:3", LockValue::Permits(three)),
            ("leasehold:type:hash", LockValue::OtherType("hash".into())),
        ] {
            assert_eq!(LockValue::read(text.as_bytes()), value);
        }
        let broken = format!("leasehold:broken:{OWNER}");
        let read = LockValue::read(broken.as_bytes());
        assert_eq!(read, LockValue::Broken(owner));
    }

    #[test]
    fn entries_are_read_as_they_are_written() {
        let owner: Owner = OWNER.parse().unwrap();
        let most = Mode::Permit(Permits::new(Permits::MAX).unwrap());
        for (mark, mode) in [("", Mode::Exclusive), ("/s", Mode::Shared), ("/p128", most)] {
            let text = format!("{OWNER}{mark}");
            assert_eq!(entry(owner, mode).as_ref(), text.as_bytes());
            assert_eq!(read_entry(&text), Some((owner, mode)));
        }
        for wrong in ["", "/x", "/s/s", "/p", "/p0", "/p03", "/p129", "/p3/s"] {
            let text = format!("{}{wrong}", if wrong.is_empty() { "a" } else { OWNER });
            assert_eq!(read_entry(&text), None, "{text}");
        }
    }
}
