use std::fmt;
use std::time::Duration;

use crate::BoxFuture;
use crate::claim::Claim;
use crate::clock::WallTime;
use crate::error::Error;
use crate::fence::Fence;
use crate::store::Store;

/// A store that can be one of a quorum's members: it adds the second round of the fence, and says
/// how it is.
///
/// # Contract
///
/// Beyond those of [`Store`]:
///
/// - **M1** `seal` raises the counter to at least the fence if, and only if, the claim holds there.
/// - **M2** A sealed fence is never granted again: every later grant of the key is greater.
pub trait Member: Store {
    /// The name under which the set knows this member; without credentials.
    fn id(&self) -> &MemberId;

    /// "If the claim still holds here, let the counter be at least `fence`."
    ///
    /// # Errors
    ///
    /// Any failure to ask or to understand the answer; the counter may have been raised, which
    /// harms nobody.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the counter may or may not have been raised.
    fn seal<'a>(&'a self, claim: &'a Claim, fence: Fence) -> BoxFuture<'a, Result<Seal, Error>>;

    /// Whether the member answers, and how it is. Also the probe of one that had gone silent.
    fn health(&self) -> BoxFuture<'_, Result<Health, Error>>;
}

/// What a member answers to [`Member::seal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// The claim holds, and the counter is at least the fence.
    Sealed,
    /// The claim does not hold here; nothing was changed.
    NotHeld,
}

/// How a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Its wall clock.
    pub clock: Option<WallTime>,
}

impl Health {
    /// A member whose wall clock shows `clock`.
    pub fn at(clock: WallTime) -> Self {
        Self { clock: Some(clock) }
    }
}

/// The name of a member within its set: `host:port` of its address, or what its `?id=` says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(String);

impl MemberId {
    /// A name; the caller sees to it that it holds no credential.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberId({})", self.0)
    }
}

/// Why one member did not count.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberFailure {
    /// The member.
    pub id: MemberId,
    /// What went wrong there.
    pub error: Error,
    /// After how long it counts again, where that is known.
    pub counts_again: Option<Duration>,
}

impl MemberFailure {
    /// `id` failed with `error`.
    pub fn new(id: MemberId, error: Error) -> Self {
        Self {
            id,
            error,
            counts_again: None,
        }
    }
}

impl fmt::Display for MemberFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names_itself = self.error.store() == Some(self.id.as_str());
        if !names_itself {
            write!(f, "{}: ", self.id)?;
        }
        self.error.fmt(f)?;
        match self.counts_again {
            Some(span) => write!(f, " (counts again in {span:.0?})"),
            None => Ok(()),
        }
    }
}
