use std::time::Duration;

use crate::instants::BootInstant;
use crate::{Error, Fence, LostReason, Owner};

/// Why a session did not take a lock.
#[derive(Clone, Debug)]
pub enum AcquireError {
    /// Another owner holds the lock, or comes first, and the request does not wait.
    Busy(Busy),
    /// Anything else. If the [effect](Error::effect) is unknown, the request may hold, or be queued.
    Failed(Error),
}

impl From<Error> for AcquireError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A grant: the request took effect at the store at some moment between the request and this answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Greater than every fence granted for this key before.
    pub fence: Fence,
    /// How long the store keeps the lease.
    pub term: Term,
    /// The owner of the lease; `None` if it is that of the request. A store sets it if it continued the wait
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
    #[inline]
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
    pub const RESOLUTION: Duration = Duration::from_millis(2);

    /// Returns the deadline of a guard whose lease was asked for with `ttl` and `delay`, the last part of the lease that
    /// guards do not use. It also lies a tenth of the TTL and 2 ms before the end, because clocks run at different
    /// rates.
    #[inline]
    pub fn deadline(&self, ttl: Duration, delay: Duration) -> Option<BootInstant> {
        let unused = delay + ttl / 10 + Self::RESOLUTION;
        Some(self.since + self.ttl?.saturating_sub(unused))
    }

    /// Returns the term of a lease that does not end by itself.
    #[inline]
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
    /// The position of this request in the queue, from 1; `None` if it is not in the queue.
    pub position: Option<u64>,
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

/// A store's answer to the renewal of one request.
#[derive(Clone, Debug)]
pub enum RenewReply {
    /// The lease still existed, and now lives for this term.
    Renewed(Term),
    /// The lease no longer exists. Final.
    Lost(LostReason),
    /// The store gave no decisive answer; the lease may have been renewed.
    Unknown(Error),
}

/// A store's answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The lease existed and is now freed.
    Released,
    /// The lease no longer existed. The release did not affect the current holder.
    WasLost,
}
