use std::fmt;

use super::permits::Permits;

/// Whether a lock is held alone or together with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// No other owner holds the lock, in any mode.
    #[doc(alias = "write")]
    #[doc(alias = "writer")]
    #[default]
    Exclusive,
    /// Other owners may hold the lock in shared mode too, but in no other mode.
    #[doc(alias = "read")]
    #[doc(alias = "reader")]
    #[doc(alias = "RwLock")]
    Shared,
    /// One of that many permits. Other owners may hold the other permits, but no owner holds the lock in
    /// another mode or with another number of permits.
    Permit(Permits),
}

impl Mode {
    /// Returns the number of permits, in [`Mode::Permit`].
    pub fn permits(self) -> Option<Permits> {
        match self {
            Self::Permit(permits) => Some(permits),
            Self::Exclusive | Self::Shared => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permit(permits) => write!(f, "permit of {permits}"),
        }
    }
}
