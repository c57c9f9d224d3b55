//! The end of a lock at the store. Only this file repeats a release.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use super::client_context::ClientContext;
use crate::env::BoxFuture;
use crate::env::clock::{self, BootInstant};
use crate::store::{Expiry, LockRequest, ReleaseReply};
use crate::telemetry::{ReleaseEnd, spans};
use crate::types::{Effect, Error, ErrorKind, exact_span};

/// How long a caller waits for the release of a lost lock.
const LOST_LIMIT: Duration = Duration::from_millis(100);

/// The pause before a release is sent again, at first and later.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The answer to a release.
pub(super) type Released = Result<ReleaseReply, Error>;

/// The release of what a request holds, or may hold.
pub(crate) struct Release {
    pub(super) request: Arc<LockRequest>,
    /// No renewal began later, so the lease is over one TTL later.
    begun: BootInstant,
    /// Whether the lock was held, and its guard still valid, when its release began.
    was_valid: bool,
    /// Whether the store may have carried out an earlier copy.
    may_be_done: bool,
}

impl Release {
    /// Returns the release of an attempt, which may hold the lock or a place in its queue.
    pub(crate) fn of_attempt(request: &Arc<LockRequest>, now: BootInstant) -> Self {
        Self {
            request: Arc::clone(request),
            begun: now,
            was_valid: false,
            may_be_done: false,
        }
    }

    /// Asks the store until it answers, or until the lease is over.
    pub(crate) async fn until_answered(&mut self, context: &ClientContext) -> Released {
        let mut pause = PAUSE_MIN;
        loop {
            let answer = self.ask_in_turn(context).await;
            if let Some(outcome) = self.outcome(context, answer) {
                return outcome;
            }
            let env = &context.env;
            let span = env.random_span(pause / 2, pause);
            env.clock.sleep_until(context.now() + span).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Asks the store once, unless the lease ends before that.
    async fn ask_in_turn(&self, context: &ClientContext) -> Released {
        if context.session_counts_releases {
            return context.session.release(&self.request).await;
        }
        // The semaphore is never closed.
        let _turn = context.release_turns.acquire().await;
        if !self.may_last(context) {
            let text = "the lease ended before its release was sent";
            return Err(context.no_answer(&self.request.key, text));
        }
        // A session may ask its servers several times, each within the limit of the request.
        let limit = self.request.limit() + LockRequest::LIMIT_MAX;
        let asking = context.session.release(&self.request);
        let answer = clock::within(&*context.env.clock, context.now() + limit, asking).await;
        answer.unwrap_or_else(|| {
            let text = format!("no answer to the release within {}", exact_span(limit));
            Err(context.no_answer(&self.request.key, text))
        })
    }

    /// Returns what came of the release; `None` if the core sends it again.
    fn outcome(&mut self, context: &ClientContext, answer: Released) -> Option<Released> {
        let error = match answer {
            // An earlier copy ended the lease.
            Ok(ReleaseReply::WasLost) if self.was_valid && self.may_be_done => {
                return Some(Ok(ReleaseReply::Released));
            }
            Ok(reply) => return Some(Ok(reply)),
            Err(error) => error,
        };
        if self.is_repeated(context, &error) {
            self.may_be_done |= error.effect() == Effect::Unknown;
            return None;
        }
        if !context.session_counts_releases {
            context.session.detach(&self.request);
        }
        context.leave_unconfirmed(self.end());
        Some(Err(error.with_unknown_effect()))
    }

    /// Whether the core sends the release again after this error.
    fn is_repeated(&self, context: &ClientContext, error: &Error) -> bool {
        if context.session_counts_releases || !self.may_last(context) {
            return false;
        }
        // A session goes on after a refusal, such as that of a password, and would keep the lock.
        let has_ended = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Forked);
        error.is_retryable() || (context.guarantees.expiry == Expiry::WithSession && !has_ended)
    }

    /// Whether the lease may not be over yet. Only some leases end by themselves.
    fn may_last(&self, context: &ClientContext) -> bool {
        context.guarantees.expiry != Expiry::Lease || context.now() < self.end()
    }

    fn end(&self) -> BootInstant {
        self.begun + self.request.ttl
    }
}

/// The release of a lock that is no longer renewed.
pub(super) struct LockRelease {
    pub(super) release: Release,
    /// Whether the lock was lost and has a delay.
    pub(super) stays_closed: bool,
    span: Span,
}

impl LockRelease {
    pub(super) fn new(
        request: &Arc<LockRequest>,
        now: BootInstant,
        was_valid: bool,
        stays_closed: bool,
    ) -> Self {
        Self {
            span: spans::release(&request.key),
            release: Release {
                was_valid,
                ..Release::of_attempt(request, now)
            },
            stays_closed,
        }
    }

    /// For how long a caller waits for the answer: for one request, and for a second one on another connection. The release of a
    /// lost lock changes little, and its caller should learn of the loss.
    pub(super) fn caller_limit(&self) -> Duration {
        let limit = self.release.request.limit().min(LockRequest::LIMIT_MAX);
        match self.release.was_valid {
            true => limit * 2,
            false => LOST_LIMIT,
        }
    }

    /// Returns how much of the [limit](Self::caller_limit) is left.
    pub(super) fn rest_of_limit(&self, now: BootInstant) -> Duration {
        self.caller_limit()
            .saturating_sub(now.since(self.release.begun))
    }

    pub(super) fn leave_closed(&self, context: &ClientContext) -> ReleaseReply {
        let _entered = self.span.enter();
        let request = &self.release.request;
        let (key, delay) = (&request.key, request.delay);
        tracing::warn!(%key, ?delay, "not released, because it was lost");
        context.session.detach(request);
        context.released(ReleaseEnd::LeftClosed, &self.span);
        ReleaseReply::WasLost
    }

    /// Ends the lock, and tells a caller that waits.
    pub(super) async fn run(
        mut self,
        context: Arc<ClientContext>,
        report: Option<oneshot::Sender<Released>>,
    ) {
        if self.stays_closed {
            self.leave_closed(&context);
            return;
        }
        let span = self.span.clone();
        let outcome = self.release.until_answered(&context).instrument(span).await;
        self.end(&context, &outcome);
        // The caller may be gone.
        let _ = report.map(|report| report.send(outcome));
    }

    /// Asks the store once.
    pub(super) fn ask<'a>(&'a self, context: &'a ClientContext) -> BoxFuture<'a, Released> {
        let asking = context.session.release(&self.release.request);
        // Without a subscriber, the future needs no room for a span.
        if self.span.is_disabled() {
            asking
        } else {
            Box::pin(asking.instrument(self.span.clone()))
        }
    }

    /// Takes in the answer to the first request. `None` if the core sends the release again.
    pub(super) fn answered(
        &mut self,
        context: &ClientContext,
        answer: Released,
    ) -> Option<Released> {
        let outcome = self.release.outcome(context, answer)?;
        self.end(context, &outcome);
        Some(outcome)
    }

    /// The answer to the first request will not be seen.
    pub(super) fn cut_off(&mut self) {
        self.release.may_be_done = true;
    }

    fn end(&self, context: &ClientContext, outcome: &Released) {
        context.released(ReleaseEnd::of(outcome), &self.span);
        let _entered = self.span.enter();
        tracing::debug!(key = %self.release.request.key, ?outcome, "release");
    }
}
