use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::coop;
use tracing::{Instrument as _, Span};

use super::attempt::Attempt;
use super::backoff;
use super::call_state::CallState;
use super::options::LockOptions;
use crate::env::clock::BootInstant;
use crate::guard::Guard;
use crate::lease::{ClientContext, ClientCore};
use crate::store::{AcquireError, Expiry, Progress, Report};
use crate::telemetry::{WaitEnd, spans};
use crate::types::{Error, ErrorKind, Key, Owner, rough_span};

/// One call of `acquire` or `try_acquire`. The caller's future runs it. If the caller drops it, the attempt ends, and
/// what it may have taken is released in the background.
pub(crate) struct Acquisition {
    pub(super) client: Arc<ClientCore>,
    pub(super) key: Key,
    pub(super) options: LockOptions,
    wait_policy: WaitPolicy,
    began: BootInstant,
}

/// How long an acquisition continues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitPolicy {
    /// For one attempt; busy is an answer.
    OneAttempt,
    /// Until granted, or for at most this long.
    Wait(Option<Duration>),
}

/// How long the store has for its first answer, however short the wait is.
const ANSWER_MIN: Duration = Duration::from_millis(200);

/// The result for the caller: `None` if another owner holds the lock.
pub(crate) type Answer = Result<Option<Guard>, Error>;

impl Acquisition {
    /// Takes the lock `key`.
    pub(crate) async fn run(
        client: Arc<ClientCore>,
        key: Key,
        mut options: LockOptions,
        wait_policy: WaitPolicy,
    ) -> Answer {
        let mut checked = options.check(&client.context);
        if let Some((least, most)) = checked.as_ref().err().and_then(Error::ttl_bounds) {
            options.ttl = options.fitting_ttl(least, most);
            checked = options.check(&client.context);
        }
        checked.map_err(|error| error.with_key(&key))?;
        client.check_running()?;
        // A store may always answer at once. A caller that asks in a loop must not keep other tasks from running.
        coop::consume_budget().await;
        // Created in the caller's context, so that the caller's span is its parent.
        let span = spans::acquire(&key, options.mode);
        let acquisition = Self {
            began: client.now(),
            client,
            key,
            options,
            wait_policy,
        };
        if span.is_disabled() {
            return acquisition.measured(Span::none()).await;
        }
        let client = Arc::clone(&acquisition.client);
        let traced = acquisition.measured(span.clone()).instrument(span);
        client.call(Box::pin(traced)).await
    }

    async fn measured(self, span: Span) -> Answer {
        let mut wait = MeasuredWait {
            client: &self.client,
            began: self.began,
            span,
            end: None,
        };
        let (answer, now) = self.attempts().await;
        // Records the wait before the caller sees the outcome, so that the caller already finds it counted.
        wait.end = Some((WaitEnd::of(&answer), now));
        drop(wait);
        answer
    }

    /// Returns the answer, and when it was there.
    async fn attempts(&self) -> (Answer, BootInstant) {
        let mut ttl = self.options.ttl;
        let state = CallState::new(self.context(), &self.key, ttl, self.waits());
        let progress = Progress::heard_by(&state);
        for failures in 0.. {
            let attempt = Attempt::begin(&self.client, &self.options, ttl, &self.key, self.waits());
            let attempt = match attempt {
                Ok(attempt) => attempt,
                Err(error) => return (Err(error.with_key(&self.key)), self.client.now()),
            };
            let asking = attempt.ask(&progress, || state.was_refused());
            let answer = self.in_time(&state, asking).await;
            let now = self.client.now();
            let error = match answer {
                Some(answer) => match attempt.end(answer, now) {
                    Ok(guard) => return (Ok(Some(guard)), now),
                    Err(AcquireError::Busy(busy)) => {
                        progress.busy(busy);
                        return (self.give_up(&progress, now), now);
                    }
                    Err(AcquireError::Failed(error)) => error,
                },
                // The attempt may have taken effect a moment ago. It is released now. A store that answered before
                // confirms that soon.
                None => {
                    let answers = matches!(progress.last(), Some(Report::Busy(_)));
                    let answer = self.give_up(&progress, now);
                    if answers && attempt.cancel().await {
                        return (answer, now);
                    }
                    // What a busy lock may have granted meanwhile is given back, so the call itself has no effect.
                    let answer = match answer {
                        Err(error) if !error.is_busy() => Err(error.with_unknown_effect()),
                        answer => answer,
                    };
                    return (answer, now);
                }
            };
            // A client learns the bounds of a quorum from its members.
            if let Some((least, most)) = error.ttl_bounds() {
                let fitting = self.options.fitting_ttl(least, most);
                if fitting != std::mem::replace(&mut ttl, fitting) {
                    continue;
                }
            }
            progress.unavailable(error.clone());
            if !self.waits() || !error.is_retryable() {
                return (Err(self.named(error)), now);
            }
            let until = now + backoff::pause_after(failures, self.context().env.entropy.next_u64());
            let pause = self.client.sleep_until(until);
            if self.in_time(&state, pause).await.is_none() {
                let now = self.client.now();
                return (self.give_up(&progress, now), now);
            }
        }
        unreachable!("the loop has no other end")
    }

    /// Runs `work` until the time of this call is up. Work that ends at once needs no timer.
    async fn in_time<T>(&self, state: &CallState<'_>, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut over = pin!(async {
            while let Some(end) = self.end(state) {
                if end <= self.client.now() {
                    return;
                }
                self.client.sleep_until(end).await;
            }
            std::future::pending::<()>().await;
        });
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => over.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// Returns the end of this call. A store that has never answered this client may have a wrong address: it gets
    /// one TTL, or one from when its members say that they will have a vote.
    fn end(&self, state: &CallState<'_>) -> Option<BootInstant> {
        let context = self.context();
        match self.wait_policy {
            WaitPolicy::Wait(Some(wait)) if !wait.is_zero() => {
                let end = self.began + wait;
                let has_no_answer = self.client.now() >= end && !state.was_refused();
                let least = self.began + ANSWER_MIN;
                Some(if has_no_answer { end.max(least) } else { end })
            }
            WaitPolicy::Wait(None) if context.was_answered() => None,
            WaitPolicy::Wait(None) => {
                Some(state.outage_end().unwrap_or(self.began + self.options.ttl))
            }
            WaitPolicy::OneAttempt | WaitPolicy::Wait(Some(_)) => {
                let expires = context.guarantees.expiry != Expiry::WithProcess;
                expires.then(|| self.began + self.options.call_limit())
            }
        }
    }

    pub(super) fn waits(&self) -> bool {
        match self.wait_policy {
            WaitPolicy::OneAttempt => false,
            WaitPolicy::Wait(wait) => wait != Some(Duration::ZERO),
        }
    }

    pub(super) fn context(&self) -> &Arc<ClientContext> {
        &self.client.context
    }

    /// Names the lock, and the store that failed.
    fn named(&self, error: Error) -> Error {
        self.context().named(error).with_key(&self.key)
    }

    /// Returns the result of a call that ends without an answer.
    fn give_up(&self, progress: &Progress<'_>, now: BootInstant) -> Answer {
        match (progress.last(), self.wait_policy) {
            (Some(Report::Busy(_)), WaitPolicy::OneAttempt) => Ok(None),
            (Some(Report::Busy(busy)), WaitPolicy::Wait(_)) => {
                let holder = busy.holder.map(Owner::client);
                let named = match holder {
                    Some(client) => format!("client {client}"),
                    None => "another client".into(),
                };
                let waited = rough_span(now.since(self.began));
                let text = format!("still held by {named} after {waited}");
                let error = Error::new(ErrorKind::Busy, text).with_holder(holder);
                Err(error.with_key(&self.key))
            }
            (Some(Report::Unavailable(error)), _) => Err(self.named(error)),
            (None, WaitPolicy::Wait(Some(wait))) if !wait.is_zero() => {
                let error = Error::new(ErrorKind::Unreachable, "no answer within the wait");
                Err(self.named(error.with_unknown_effect()))
            }
            (None, _) => {
                let error = LockOptions::too_late(self.context(), self.options.call_limit());
                Err(error.with_key(&self.key))
            }
        }
    }
}

/// Records how long a call took, and how it ended. A call that its caller drops was cancelled.
struct MeasuredWait<'a> {
    client: &'a ClientCore,
    began: BootInstant,
    span: Span,
    end: Option<(WaitEnd, BootInstant)>,
}

impl Drop for MeasuredWait<'_> {
    fn drop(&mut self) {
        let (end, now) = match self.end {
            Some(ended) => ended,
            // A forked child records nothing.
            None if self.client.is_forked() => return,
            None => (WaitEnd::Cancelled, self.client.now()),
        };
        let waited = now.since(self.began);
        self.client.context.metrics.waited(end, waited);
        if !self.span.is_disabled() {
            spans::acquired(&self.span, end, waited);
        }
    }
}
