use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::WallTime;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::holder::{ClientInfo, Holder};
use crate::owner::Owner;

/// How an operator breaks a lock, and what is written down about it.
///
/// # Examples
///
/// ```
/// use leasehold::Break;
///
/// let how = Break::at_its_end().by_user("ann")?.because("the host is gone")?;
/// assert!(Break::at_once().because("one\nline only").is_err());
/// # let _ = how;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Break {
    at_once: bool,
    user: Option<String>,
    reason: Option<String>,
}

impl Break {
    /// The longest name of a user, and the longest reason, in bytes of UTF-8.
    pub const TEXT_MAX: usize = 512;

    /// The lock stays shut until the holder's lease would have ended. By then the holder was told by
    /// its next renewal, or its guard ended by its own deadline: nobody holds the lock beside it.
    pub fn at_its_end() -> Self {
        Self::default()
    }

    /// The lock is free at once, and handed over as after a release. The holder may go on until its
    /// next renewal: meanwhile nothing but a check of fences protects what the lock is for. A delay of
    /// the lock ([`Lock::lock_delay`](crate::Lock::lock_delay)) is cut off, too.
    pub fn at_once() -> Self {
        Self {
            at_once: true,
            ..Self::default()
        }
    }

    /// The same, by this user of the operator's machine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a text that is empty, longer than [`Break::TEXT_MAX`], or has
    /// control characters.
    pub fn by_user(mut self, user: impl Into<String>) -> Result<Self, Error> {
        self.user = Some(checked("user", user.into())?);
        Ok(self)
    }

    /// The same, for this reason.
    ///
    /// # Errors
    ///
    /// As [`by_user`](Self::by_user).
    pub fn because(mut self, reason: impl Into<String>) -> Result<Self, Error> {
        self.reason = Some(checked("reason", reason.into())?);
        Ok(self)
    }

    /// What is written down of it when `by` breaks this lease at the instant `at`.
    pub(crate) fn record(
        self,
        owner: Owner,
        fence: Fence,
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
    if text.len() > Break::TEXT_MAX {
        return refuse(format!(
            "the {what} has {} bytes; the maximum is {}",
            text.len(),
            Break::TEXT_MAX
        ));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => refuse(format!(
            "the {what} {text:?} contains the control character {control:?}, which is not allowed"
        )),
        None => Ok(text),
    }
}

/// That an operator broke a lock: whose lease it was, who did it, when and why. Kept beside the lock
/// for [`BreakRecord::KEPT`], or until it is broken again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakRecord {
    /// The attempt whose lease was broken.
    pub owner: Owner,
    /// The fence of that lease.
    pub fence: Fence,
    /// Whether the lock was freed at once, and not only when the lease would have ended.
    pub at_once: bool,
    /// Which client broke it.
    pub by: ClientInfo,
    /// Which user of that client's machine, where it was said.
    pub user: Option<String>,
    /// Why, where it was said.
    pub reason: Option<String>,
    /// When, by the wall clock of the one who broke it.
    pub at: WallTime,
}

impl BreakRecord {
    /// How long it is kept.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// The lease of `owner` was broken by `by`: for stores that read what another process wrote.
    pub fn new(owner: Owner, fence: Fence, by: ClientInfo, at: WallTime) -> Self {
        Break::at_its_end().record(owner, fence, Arc::new(by), at)
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

/// What became of a lease that was to be broken. Where it did not stand any more nothing was ended; but its
/// owner is refused from now on, also where it holds the lock in shared mode by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// Whether the lease stood, or what was left of one that was broken before.
    pub stood: bool,
    /// How long the lock stays shut; `None` where it does not.
    pub shut_for: Option<Duration>,
    /// On how many members it was done.
    pub members: usize,
}

impl Broken {
    /// It was done in one place.
    pub fn new(stood: bool, shut_for: Option<Duration>) -> Self {
        Self {
            stood,
            shut_for,
            members: 1,
        }
    }
}

/// What [`Client::break_lock`](crate::Client::break_lock) answers. That somebody else holds the lock is
/// an answer like any other, and nothing was changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The lease with this fence is broken.
    Done(Broken, BreakRecord),
    /// Nobody holds the lock.
    Free,
    /// This holder has it, with another fence, or with one that the store does not know (yet).
    HeldBy(Box<Holder>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_breaks_a_rule_is_refused_with_the_rule() {
        let long = "x".repeat(Break::TEXT_MAX + 1);
        for (text, rule) in [
            ("", "is empty"),
            ("a\u{1b}[2J", "control character"),
            (&long, "has 513 bytes; the maximum is 512"),
        ] {
            let error = Break::at_once().because(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(rule), "{error}");
            assert!(Break::at_once().by_user(text).is_err());
        }
        let most = "x".repeat(Break::TEXT_MAX);
        assert!(Break::at_once().because(most).is_ok());
    }
}
