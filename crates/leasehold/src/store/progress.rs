use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use super::{AcquireError, Busy, Grant, LockRequest};
use crate::env::{Env, locked};
use crate::types::Error;

/// What a [`Session`](super::Session) reports while it takes a lock. A client reads the last report when the wait ends,
/// so a store may report as often as it learns something.
pub struct Progress<'a> {
    last: Mutex<Option<Report>>,
    listener: Option<&'a dyn Listener>,
}

/// What a store learned about a lock that it cannot grant yet.
#[derive(Clone, Debug)]
pub enum Report {
    /// The store answered: another owner holds the lock, or comes first.
    Busy(Busy),
    /// The store does not answer at present, or cannot decide.
    Unavailable(Error),
}

/// Hears each report at once, on the thread that reports. It must not block.
pub trait Listener: Send + Sync {
    /// A report came.
    fn heard(&self, report: &Report);
}

impl<F: Fn(&Report) + Send + Sync> Listener for F {
    fn heard(&self, report: &Report) {
        self(report);
    }
}

impl<'a> Progress<'a> {
    /// Returns a place for reports, for tools that use a session without a client.
    #[expect(clippy::new_without_default, reason = "a default says nothing here")]
    pub fn new() -> Self {
        Self {
            last: Mutex::default(),
            listener: None,
        }
    }

    /// Returns a place for reports. `listener` hears each of them.
    pub fn heard_by(listener: &'a dyn Listener) -> Self {
        Self {
            last: Mutex::default(),
            listener: Some(listener),
        }
    }

    /// The store answered: another owner holds the lock, or comes first.
    pub fn busy(&self, busy: Busy) {
        self.report(Report::Busy(busy));
    }

    /// The store does not answer at present, or cannot decide. The session goes on by itself.
    pub fn unavailable(&self, error: Error) {
        self.report(Report::Unavailable(error));
    }

    /// Returns the last report.
    pub fn last(&self) -> Option<Report> {
        locked(&self.last).clone()
    }

    fn report(&self, report: Report) {
        if let Some(listener) = self.listener {
            listener.heard(&report);
        }
        *locked(&self.last) = Some(report);
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// Waits at a store that cannot wait itself: makes `attempt` again, after `pause`, while the lock is busy and the request
/// waits. Each attempt has a request with the current time as its proposal.
///
/// # Errors
///
/// The first error of an attempt.
///
/// # Cancel safety
///
/// Dropping the future drops the attempt or the pause under way.
pub async fn poll_until<A, P>(
    env: &Env,
    request: &Arc<LockRequest>,
    progress: &Progress<'_>,
    mut attempt: impl FnMut(Arc<LockRequest>) -> A,
    mut pause: impl FnMut() -> P,
) -> Result<Grant, AcquireError>
where
    A: Future<Output = Result<Grant, AcquireError>>,
    P: Future<Output = ()>,
{
    let mut next = Arc::clone(request);
    loop {
        match attempt(next).await {
            Err(AcquireError::Busy(busy)) if request.waits => progress.busy(busy),
            answer => return answer,
        }
        pause().await;
        next = Arc::new(LockRequest::clone(request).proposed_at(env.clock.wall()));
    }
}
