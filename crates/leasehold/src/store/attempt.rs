use std::fmt;
use std::time::Duration;

use crate::env::clock::BootInstant;
use crate::types::{Error, Fence, Owner};

/// A store's answer to a claim. Busy is a normal answer, not an error.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The claim holds.
    Granted(Grant),
    /// Another owner holds the lock.
    Busy(Busy),
}

/// A grant: the claim took effect at the store at some moment between the request and this answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Greater than every fence granted for this key before.
    pub fence: Fence,
    /// How long the store keeps the lease.
    pub term: Term,
    /// The owner of the lease; `None` if it is that of the claim. A store sets it if it continued the wait
    /// with another owner. The client renews and releases the lease of this owner.
    pub owner: Option<Owner>,
}

impl Grant {
    /// Returns a grant with `fence` for `term`.
    pub fn new(fence: Fence, term: Term) -> Self {
        Self {
            fence,
            term,
            owner: None,
        }
    }

    /// The same grant, whose lease belongs to `owner`.
    #[must_use]
    pub fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }
}

/// How long a store keeps a lease for its owner, by the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// When the lease begins: an instant before the request was sent that the store answers. The store cannot have
    /// begun to count earlier.
    pub since: BootInstant,
    /// For how long the store keeps the lease from then on, less what its clocks may be wrong by; `None` if the
    /// lease does not end by itself.
    pub ttl: Option<Duration>,
}

impl Term {
    /// Returns the term of a lease of `ttl`.
    pub fn new(since: BootInstant, ttl: Duration) -> Self {
        let ttl = Some(ttl);
        Self { since, ttl }
    }

    /// Servers count a TTL in whole milliseconds.
    pub(crate) const RESOLUTION: Duration = Duration::from_millis(2);

    /// Returns the deadline of a guard whose lease was asked for with `ttl` and `delay`, the last part of the lease that
    /// guards do not use. It also lies a tenth of the TTL and 2 ms before the end, because clocks run at different
    /// rates.
    pub fn deadline(&self, ttl: Duration, delay: Duration) -> Option<BootInstant> {
        let unused = delay + ttl / 10 + Self::RESOLUTION;
        Some(self.since + self.ttl?.saturating_sub(unused))
    }

    /// Returns the term of a lease that does not end by itself.
    pub fn endless(since: BootInstant) -> Self {
        Self { since, ttl: None }
    }
}

/// What a refused attempt learned about the lock. A store fills in only what costs it nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The owner that holds the lock; `None` if it is unknown or belongs to another library.
    pub holder: Option<Owner>,
    /// How long the holder's lease lives unless renewed.
    pub remaining: Option<Duration>,
    /// The position of this claim in the queue, from 1; `None` if it is not in the queue.
    pub place: Option<u64>,
    /// The store cannot notify the waiter of its turn: the server, or the user's permissions, do not
    /// allow it.
    pub cannot_notify: bool,
}

impl Busy {
    /// Returns a refusal by `holder`, if it is known.
    pub fn by(holder: Option<Owner>) -> Self {
        Self {
            holder,
            ..Self::default()
        }
    }
}

/// A store's answer to the renewal of one claim.
#[derive(Clone, Debug)]
pub enum Renewal {
    /// The lease still existed, and now lives for this term.
    Renewed(Term),
    /// The lease no longer exists. Final.
    Lost(LostReason),
    /// The store gave no decisive answer; the lease may have been renewed.
    Unknown(Error),
}

/// A store's answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The lease existed and is now freed.
    Released,
    /// The lease no longer existed. The release did not affect the current holder.
    WasLost,
}

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
    /// Its holder [gave it up](crate::Guard::give_up).
    GivenUp,
    /// The caller is a forked child of the process that holds the guard.
    Forked,
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
            Self::Forked => "this process is a forked child of the one that holds it",
        })
    }
}
