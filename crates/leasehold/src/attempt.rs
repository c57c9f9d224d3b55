use std::fmt;
use std::time::Duration;

use crate::clock::BootInstant;
use crate::error::Error;
use crate::fence::Fence;
use crate::owner::Owner;

/// What a store answers to a claim. Busy is an answer like any other, not an error.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The claim holds.
    Granted(Grant),
    /// Somebody else holds the lock.
    Busy(Busy),
}

/// The claim holds at the store from some moment between asking and this answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Greater than every fence granted for this key before.
    pub fence: Fence,
    /// The instant from which the lease counts, by the client's clock; `None`: from when the store was asked.
    /// A store sets it if the grant answers a request that it sent itself, later than that.
    pub since: Option<BootInstant>,
}

impl Grant {
    /// A grant with `fence`.
    pub fn new(fence: Fence) -> Self {
        Self { fence, since: None }
    }

    /// The same grant, whose lease counts from `since`.
    #[must_use]
    pub fn counted_from(mut self, since: BootInstant) -> Self {
        self.since = Some(since);
        self
    }
}

/// What a refused attempt learned in passing; each part only where it cost nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The attempt that holds the lock; `None` if unknown or of another library.
    pub holder: Option<Owner>,
    /// How long it holds it at most, unless it renews.
    pub remaining: Option<Duration>,
    /// The place of this claim in the queue, 1 being next; `None` if it is in none.
    pub place: Option<u64>,
    /// The waiter cannot be told here when its turn comes: the server, or what the user may do, does not
    /// allow it.
    pub untold: bool,
}

impl Busy {
    /// Held by `holder`, if it is known.
    pub fn by(holder: Option<Owner>) -> Self {
        Self {
            holder,
            ..Self::default()
        }
    }
}

/// What a store answers to the renewal of one claim.
#[derive(Clone, Debug)]
pub enum Renewal {
    /// The lease still stood, and now lives for its whole TTL again.
    Renewed,
    /// The lease does not stand any more. Final.
    Lost(LostReason),
    /// No answer, or none that decides; the lease may have been renewed.
    Unknown(Error),
}

/// What a store answers to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The lease stood, and is freed.
    Released,
    /// The lease did not stand any more; whoever holds the lock now was not touched.
    WasLost,
}

/// Why a guard is no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// The deadline passed while a renewal was under way.
    Expired,
    /// Renewals had failed for so long that the deadline passed.
    Unreachable,
    /// This process, or its machine, stood still past the deadline: no renewal was even sent.
    StoodStill,
    /// Somebody else holds the lock.
    Taken,
    /// The lease vanished from the store: it was deleted, or the store forgot it.
    Gone,
    /// An operator broke the lock.
    Broken,
    /// The longest time the caller allowed it to be held (`max_hold`) is over.
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
            Self::StoodStill => "this process or machine stood still past its deadline",
            Self::Taken => "another client holds the lock",
            Self::Gone => "the lease vanished from the store",
            Self::Broken => "an operator broke the lock",
            Self::MaxHold => "the longest time it may be held is over",
            Self::GivenUp => "its holder gave it up",
            Self::Forked => "this process is a forked child of the one that holds it",
        })
    }
}
