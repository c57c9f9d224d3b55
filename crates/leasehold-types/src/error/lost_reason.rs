use std::fmt;

/// Why a guard is no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// The deadline passed while a renewal was in progress.
    Expired,
    /// Renewals failed until the deadline had passed.
    Unreachable,
    /// This process or its machine was paused past the deadline, so it did not even send a renewal.
    Paused,
    /// Another owner holds the lock.
    Taken,
    /// The lease vanished from the store: it was deleted, or the store forgot it.
    Gone,
    /// An operator broke the lock.
    Broken,
    /// The longest hold time that the caller allowed (`max_hold`) is over.
    MaxHold,
    /// Its holder gave it up (`Guard::give_up`).
    GivenUp,
    /// Its client was closed (`Client::close`).
    Closed,
    /// The caller is a forked child of the process that holds the guard.
    Forked,
}

impl LostReason {
    /// Returns a name for programs, such as `max_hold`. It does not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Unreachable => "unreachable",
            Self::Paused => "paused",
            Self::Taken => "taken",
            Self::Gone => "gone",
            Self::Broken => "broken",
            Self::MaxHold => "max_hold",
            Self::GivenUp => "given_up",
            Self::Closed => "closed",
            Self::Forked => "forked",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its deadline passed before a renewal was confirmed",
            Self::Unreachable => "renewals failed until its deadline had passed",
            Self::Paused => "this process or machine was paused past its deadline",
            Self::Taken => "another client holds the lock",
            Self::Gone => "the lease vanished from the store",
            Self::Broken => "an operator broke the lock",
            Self::MaxHold => "the longest time it may be held is over",
            Self::GivenUp => "its holder gave it up",
            Self::Closed => "its client was closed",
            Self::Forked => "this process is a forked child of the one that holds it",
        })
    }
}
