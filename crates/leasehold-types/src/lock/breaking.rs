use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::instants::WallTime;
use crate::printable::unprintable;
use crate::{ClientInfo, Error, ErrorKind, Fence, Holder, Owner};

/// How an operator breaks a lock, and what the record of the break says.
///
/// # Examples
///
/// ```
/// use leasehold::look::BreakOptions;
///
/// let how = BreakOptions::at_its_end().by_user("ann")?.because("the host is gone")?;
/// assert!(BreakOptions::at_once().because("one\nline only").is_err());
/// # let _ = how;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakOptions {
    at_once: bool,
    user: Option<String>,
    reason: Option<String>,
}

impl BreakOptions {
    /// The longest name of a user, and the longest reason, in bytes of UTF-8.
    pub const TEXT_MAX: usize = 512;

    /// Breaks the lock at the time when the holder's lease would have ended. Until then the lock stays
    /// unavailable. By then the holder's next renewal has reported the break, or its guard has passed its
    /// own deadline, so no two clients hold the lock at once.
    pub fn at_its_end() -> Self {
        Self::default()
    }

    /// Frees the lock at once, and passes it on as after a release. The holder may continue until its
    /// next renewal; meanwhile only a check of fences protects the resource. The break also cuts off a
    /// lock delay (`Lock::lock_delay`).
    pub fn at_once() -> Self {
        Self {
            at_once: true,
            ..Self::default()
        }
    }

    /// Records which user of the operator's machine breaks the lock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the text is empty, is longer than [`BreakOptions::TEXT_MAX`], or contains
    /// characters that are not [printable](crate::is_printable).
    pub fn by_user(mut self, user: impl Into<String>) -> Result<Self, Error> {
        self.user = Some(checked("user", user.into())?);
        Ok(self)
    }

    /// Records the reason.
    ///
    /// # Errors
    ///
    /// As [`by_user`](Self::by_user).
    pub fn because(mut self, reason: impl Into<String>) -> Result<Self, Error> {
        self.reason = Some(checked("reason", reason.into())?);
        Ok(self)
    }

    /// Returns the record of this break, by the client `by` at the instant `at`.
    pub fn record(
        self,
        owner: Owner,
        fence: Option<Fence>,
        by: Arc<ClientInfo>,
        at: WallTime,
    ) -> BreakRecord {
        BreakRecord {
            owner,
            fence,
            at_once: self.at_once,
            by: (*by).clone(),
            user: self.user,
            reason: self.reason,
            at,
        }
    }
}

fn checked(what: &str, text: String) -> Result<String, Error> {
    let refuse = |rule: String| Err(Error::new(ErrorKind::InvalidInput, rule));
    if text.is_empty() {
        return refuse(format!("the {what} is empty; give at least one character"));
    }
    if text.len() > BreakOptions::TEXT_MAX {
        return refuse(format!(
            "the {what} has {} bytes; the maximum is {}",
            text.len(),
            BreakOptions::TEXT_MAX
        ));
    }
    match unprintable(&text) {
        Some(character) => refuse(format!(
            "the {what} {text:?} contains {character}, which is not allowed"
        )),
        None => Ok(text),
    }
}

/// The record of a break: whose lease it was, and who broke the lock, when and why. A store keeps it next
/// to the lock for [`BreakRecord::KEPT`], or until the next break of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BreakRecord {
    /// The owner of the broken lease.
    pub owner: Owner,
    /// The fence of that lease, if the store knew it.
    pub fence: Option<Fence>,
    /// Whether the lock was freed at once rather than when the lease would have ended.
    pub at_once: bool,
    /// The client that broke the lock.
    pub by: ClientInfo,
    /// The user of that client's machine, if given.
    pub user: Option<String>,
    /// The reason, if given.
    pub reason: Option<String>,
    /// The time of the break, by the wall clock of the client that broke the lock.
    pub at: WallTime,
}

impl BreakRecord {
    /// How long a store keeps the record.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// Returns the record of a break of the lease of `owner`, for stores that read what another process
    /// wrote.
    pub fn new(owner: Owner, fence: Option<Fence>, by: ClientInfo, at: WallTime) -> Self {
        BreakOptions::at_its_end().record(owner, fence, Arc::new(by), at)
    }
}

impl fmt::Display for BreakRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            Some(user) => write!(f, "{user} with {}", self.by)?,
            None => self.by.fmt(f)?,
        }
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// Which lease of a lock to break: by its fence, or by its owner. Several holders have different fences, but a store need not
/// know the fence of a shared lease or of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakTarget {
    /// The lease with this fence.
    Fence(Fence),
    /// The lease of this owner.
    Owner(Owner),
}

impl BreakTarget {
    /// Returns whether this is the lease of `holder`.
    pub fn is(self, holder: &Holder) -> bool {
        match self {
            Self::Fence(fence) => holder.fence == Some(fence),
            Self::Owner(owner) => holder.owner == Some(owner),
        }
    }
}

impl From<Fence> for BreakTarget {
    fn from(fence: Fence) -> Self {
        Self::Fence(fence)
    }
}

impl From<Owner> for BreakTarget {
    fn from(owner: Owner) -> Self {
        Self::Owner(owner)
    }
}

/// The result of breaking a lease. If the lease no longer existed, the break ended nothing. Even then the
/// store refuses the owner from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenLease {
    /// Whether the lease existed, or the rest of a lease that was broken before.
    pub existed: bool,
    /// How long the lease still keeps others out; `None` if it is over.
    pub closed_for: Option<Duration>,
    /// The number of members that broke the lease.
    pub members: usize,
}

impl BrokenLease {
    /// Returns the result of a break in a single place.
    pub fn new(existed: bool, closed_for: Option<Duration>) -> Self {
        Self {
            existed,
            closed_for,
            members: 1,
        }
    }
}

/// The answer of `Client::break_lock`. Another holder is a normal answer,
/// and means that the call changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakOutcome {
    /// The lease is broken.
    Done(BrokenLease, Box<BreakRecord>),
    /// The lock is free.
    Free,
    /// These clients hold the lock, and none of them has that lease.
    HeldBy(Vec<Holder>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_reason_is_refused_with_its_rule() {
        let long = "x".repeat(BreakOptions::TEXT_MAX + 1);
        for (text, rule) in [
            ("", "is empty"),
            ("a\u{1b}[2J", "control character"),
            ("a\u{2066}b", "format character"),
            (&long, "has 513 bytes; the maximum is 512"),
        ] {
            let error = BreakOptions::at_once().because(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(rule), "{error}");
            assert!(BreakOptions::at_once().by_user(text).is_err());
        }
        let most = "x".repeat(BreakOptions::TEXT_MAX);
        assert!(BreakOptions::at_once().because(most).is_ok());
    }
}
