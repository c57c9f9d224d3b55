use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The name of a lock, checked once and then trusted.
///
/// A key is 1 to [`Key::MAX_BYTES`] bytes of UTF-8 that are all
/// [printable](crate::is_printable): no control characters, and none that change the direction of the text.
/// It does not begin with `leasehold:`, which stores use for their own records. Keys are case-sensitive and not normalized: two
/// keys are the same lock exactly if their bytes are equal.
///
/// # Examples
///
/// ```
/// use leasehold::Key;
///
/// assert_eq!(Key::new("invoices/2026-11")?.as_str(), "invoices/2026-11");
/// assert!(Key::new("").unwrap_err().to_string().contains("empty"));
/// assert!("deploy".parse::<Key>()? == "deploy");
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) Arc<str>);

impl Key {
    /// The longest name a lock may have, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 512;

    /// The prefix of the stores' own records. No name may begin with it.
    pub const RESERVED_PREFIX: &'static str = "leasehold:";

    /// Returns the name as it was given.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Key {
    fn eq(&self, name: &str) -> bool {
        &*self.0 == name
    }
}

impl PartialEq<&str> for Key {
    fn eq(&self, name: &&str) -> bool {
        &*self.0 == *name
    }
}

/// A map with keys can be asked for a name.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", &*self.0)
    }
}
