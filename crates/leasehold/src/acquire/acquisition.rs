use std::future::{Future, pending};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tracing::{Instrument as _, Span};

use super::attempt::Attempt;
use super::backoff;
use super::call_state::CallState;
use crate::env::clock::BootInstant;
use crate::guard::Guard;
use crate::lease::ClientContext;
use crate::lease::ClientCore;
use crate::runtime::background::Within;
use crate::store::{AcquireError, Claim, Expiry, Progress, Report};
use crate::telemetry::{WaitEnd, spans};
use crate::types::{Error, ErrorKind, Key, Mode, Owner};

/// One call of `acquire` or `try_acquire`. The caller's future runs it. If the caller drops it, the attempt ends, and
/// what it may have taken is released in the background.
pub(crate) struct Acquisition {
    pub(crate) context: Arc<ClientContext>,
    /// Only for the guard: an attempt must not keep alive the client that waits for it.
    pub(crate) client: Weak<ClientCore>,
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    pub(crate) ttl: Duration,
    /// How much longer the lease lives at the store than the guard uses it.
    pub(crate) delay: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) wait_policy: WaitPolicy,
    /// Whether to acquire ahead of the queue.
    pub(crate) barging: bool,
    pub(crate) began: BootInstant,
    /// Created in the caller's context, so that the caller's span is its parent.
    pub(crate) span: Span,
}

/// How long an acquisition continues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitPolicy {
    /// For one attempt; busy is an answer.
    OneAttempt,
    /// Until granted, or for at most this long.
    Wait(Option<Duration>),
}

/// The result for the caller: `None` if another owner holds the lock.
pub(crate) type Answer = Result<Option<Guard>, Error>;

impl Acquisition {
    pub(crate) fn start(self, client: &ClientCore) -> Result<Within<Answer>, Error> {
        let span = self.span.clone();
        let running = self.run();
        // Without a subscriber, the task needs no room for a span.
        if span.is_disabled() {
            client.within(running)
        } else {
            client.within(running.instrument(span))
        }
    }

    async fn run(self) -> Answer {
        let mut wait = MeasuredWait {
            acquisition: &self,
            end: None,
        };
        let outcome = self.attempts().await;
        // Records the wait before the caller sees the outcome, so that the caller already finds it counted.
        wait.end = Some(WaitEnd::of(&outcome));
        drop(wait);
        outcome
    }

    async fn attempts(&self) -> Answer {
        let state = CallState::new(self);
        let progress = Progress::heard_by(Arc::<CallState>::clone(&state));
        for failures in 0.. {
            let attempt = Attempt::begin(self);
            let answer = self.in_time(&state, attempt.ask(&progress)).await;
            let error = match answer {
                Some(answer) => match attempt.end(answer) {
                    Ok(guard) => return Ok(Some(guard)),
                    Err(AcquireError::Busy(busy)) => {
                        progress.busy(busy);
                        return self.give_up(&progress);
                    }
                    Err(AcquireError::Failed(error)) => error,
                },
                // The attempt may have taken effect a moment ago. It is released now.
                None => return self.give_up(&progress).map_err(Error::with_unknown_effect),
            };
            progress.unavailable(error.clone());
            if !self.waits() || !error.is_retryable() {
                return Err(error.with_key(&self.key));
            }
            let random = self.context.env.entropy.next_u64();
            let until = self.context.now() + backoff::pause_after(failures, random);
            let pause = self.context.env.clock.sleep_until(until);
            if self.in_time(&state, pause).await.is_none() {
                return self.give_up(&progress);
            }
        }
        unreachable!("the loop has no other end")
    }

    /// Runs `work` until the time of this call is up.
    async fn in_time<T>(&self, state: &CallState, work: impl Future<Output = T>) -> Option<T> {
        let over = async {
            while let Some(end) = self.end(state) {
                if end <= self.context.now() {
                    return;
                }
                self.context.env.clock.sleep_until(end).await;
            }
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            output = work => Some(output),
            () = over => None,
        }
    }

    /// Returns the end of this call. A store that has never answered this client may have a wrong address: it gets
    /// one TTL, or one from when its members say that they will have a vote.
    fn end(&self, state: &CallState) -> Option<BootInstant> {
        match self.wait_policy {
            WaitPolicy::Wait(Some(wait)) if !wait.is_zero() => Some(self.began + wait),
            WaitPolicy::Wait(None) if self.context.was_answered() => None,
            WaitPolicy::Wait(None) => Some(state.outage_end().unwrap_or(self.began + self.ttl)),
            WaitPolicy::OneAttempt | WaitPolicy::Wait(Some(_)) => {
                let expires = self.context.guarantees.expiry != Expiry::WithProcess;
                expires.then(|| self.began + self.limit())
            }
        }
    }

    /// Returns how long one request may take. Later, too little of the lease would be left.
    fn limit(&self) -> Duration {
        (self.ttl / 3).min(Claim::LIMIT_MAX)
    }

    fn waits(&self) -> bool {
        match self.wait_policy {
            WaitPolicy::OneAttempt => false,
            WaitPolicy::Wait(wait) => wait != Some(Duration::ZERO),
        }
    }

    /// Returns the claim of a new owner.
    pub(super) fn claim(&self) -> Arc<Claim> {
        let env = &self.context.env;
        let wall = env.clock.wall();
        let owner = Owner::at(self.context.info.id, wall, &*env.entropy);
        let info = Arc::clone(&self.context.info);
        let claim = Claim::new(self.key.clone(), owner, self.ttl, wall, info)
            .with_delay(self.delay)
            .with_mode(self.mode)
            .waiting(self.waits())
            .barging(self.barging);
        Arc::new(claim)
    }

    pub(super) fn too_late(&self) -> Error {
        let text = format!("no answer within {:?}", self.limit());
        Error::new(ErrorKind::Unreachable, text)
            .with_store(self.context.store.to_string())
            .with_unknown_effect()
    }

    /// Returns the result of a call that ends without an answer.
    fn give_up(&self, progress: &Progress) -> Answer {
        match (progress.last(), self.wait_policy) {
            (Some(Report::Busy(_)), WaitPolicy::OneAttempt) => Ok(None),
            (Some(Report::Busy(busy)), WaitPolicy::Wait(_)) => {
                let holder = match busy.holder {
                    Some(owner) => format!("client {}", owner.client()),
                    None => "another client".into(),
                };
                let waited = self.context.now().since(self.began);
                let text = format!("still held by {holder} after {waited:.1?}");
                Err(Error::new(ErrorKind::Busy, text).with_key(&self.key))
            }
            (Some(Report::Unavailable(error)), _) => Err(error.with_key(&self.key)),
            (None, WaitPolicy::Wait(Some(wait))) if !wait.is_zero() => {
                let error = Error::new(ErrorKind::Unreachable, "no answer within the wait")
                    .with_store(self.context.store.to_string())
                    .with_unknown_effect();
                Err(error.with_key(&self.key))
            }
            (None, _) => Err(self.too_late().with_key(&self.key)),
        }
    }
}

/// Records how long a call took, and how it ended. A call that its caller drops was cancelled.
struct MeasuredWait<'a> {
    acquisition: &'a Acquisition,
    end: Option<WaitEnd>,
}

impl Drop for MeasuredWait<'_> {
    fn drop(&mut self) {
        let Acquisition {
            context,
            began,
            span,
            ..
        } = self.acquisition;
        let end = self.end.unwrap_or(WaitEnd::Cancelled);
        let waited = context.now().since(*began);
        context.metrics.waited(end, waited);
        spans::acquired(span, end, waited);
    }
}
