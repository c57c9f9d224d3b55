use std::sync::{Arc, Weak};
use std::time::Duration;

use tracing::{Instrument as _, Span};

use super::backoff;
use super::wait_policy::{Answer, Limits, OutageDeadline, WaitPolicy};
use crate::env::clock::{self, BootInstant};
use crate::guard::Guard;
use crate::lease::ClientContext;
use crate::lease::ClientCore;
use crate::runtime::background::{self, Running};
use crate::store::{Attempt, Busy, Claim, Expiry};
use crate::telemetry::{AttemptEnd, WaitEnd, spans};
use crate::types::{Effect, Error, ErrorKind, Key, Mode, Owner, Wait};

/// One call of `acquire` or `try_acquire`: its attempts and the waits between them. The caller's future
/// runs them. If the caller drops it, the background thread finishes them.
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
    /// Created in the caller's context, so that the caller's span is its parent.
    pub(crate) span: Span,
}

/// Why an attempt did not end in a guard.
enum AttemptFailure {
    Busy(Busy),
    Failed(Error),
    /// The caller's wait ended, or the caller was gone, before an answer arrived.
    CutOff,
}

impl Acquisition {
    pub(crate) fn start(self, client: &ClientCore) -> Result<Running<Answer>, Error> {
        let span = self.span.clone();
        let running = self.run();
        // Without a subscriber, the task needs no room for a span.
        if span.is_disabled() {
            client.run(running)
        } else {
            client.run(running.instrument(span))
        }
    }

    async fn run(self) -> Answer {
        let mut limits = self.limits();
        let outcome = self.attempts(&mut limits).await;
        let end = WaitEnd::of(&outcome, !background::is_detached());
        let now = limits.granted.unwrap_or_else(|| self.context.now());
        let waited = now.since(limits.began);
        // Record the wait before the caller sees the outcome, so that the caller already finds it
        // counted.
        self.context.metrics.waited(end, waited);
        spans::acquired(&self.span, end, waited);
        outcome
    }

    async fn attempts(&self, limits: &mut Limits) -> Answer {
        let began = limits.began;
        let mut failures = 0;
        let mut was_refused = false;
        let mut outage = OutageDeadline::new(began + self.ttl);
        // The outcome if the wait ends in the middle of an attempt, which has no outcome of its own.
        let mut last = AttemptFailure::CutOff;
        loop {
            let (claim, sent) = self.claim(limits);
            match self.attempt(&claim, sent, limits).await {
                Ok(guard) => {
                    self.context.answered();
                    self.context.session.leave(&claim);
                    return Ok(Some(guard));
                }
                Err(AttemptFailure::CutOff) => {
                    // This attempt finishes in the background, so it may hold the lock for a moment.
                    let outcome = self.give_up(last, began);
                    return outcome.map_err(Error::with_unknown_effect);
                }
                Err(failure) => last = failure,
            }
            let now = self.context.now();
            match &last {
                AttemptFailure::Busy(_) => {
                    failures = 0;
                    if !std::mem::replace(&mut was_refused, true) {
                        self.context.metrics.contended();
                    }
                    self.context.answered();
                }
                AttemptFailure::Failed(error) => {
                    if error.is_not_ready() {
                        self.context.answered();
                    }
                    outage.learn(error, now + self.ttl);
                }
                AttemptFailure::CutOff => {}
            }
            if !self.goes_on(&last, &outage, now, limits) {
                self.context.session.leave(&claim);
                return self.give_up(last, began);
            }
            let pause = async {
                if let AttemptFailure::Busy(_) = last {
                    self.context.session.wait(&claim).await;
                } else {
                    let random = self.context.env.entropy.next_u64();
                    let until = now + backoff::pause_after(failures, random);
                    self.context.env.clock.sleep_until(until).await;
                }
            };
            if limits.bound(&self.context, pause).await.is_none() {
                self.context.session.leave(&claim);
                return self.give_up(last, began);
            }
            failures = failures.saturating_add(1);
            if claim.wait != Wait::Queued {
                // The attempt is over, and the store may have released what it took.
                self.context.session.leave(&claim);
                limits.owner = self.new_owner();
            }
        }
    }

    fn limits(&self) -> Limits {
        let began = self.context.now();
        let end = match self.wait_policy {
            WaitPolicy::OneAttempt => None,
            WaitPolicy::Wait(span) => span.map(|span| began + span),
        };
        Limits {
            owner: self.new_owner(),
            began,
            end,
            granted: None,
        }
    }

    /// Returns how the attempts wait if the lock is held.
    fn wait(&self) -> Wait {
        match self.wait_policy {
            _ if self.barging => Wait::Barging,
            WaitPolicy::OneAttempt => Wait::None,
            WaitPolicy::Wait(_) => Wait::Queued,
        }
    }

    fn new_owner(&self) -> Owner {
        let env = &self.context.env;
        let wall = env.clock.wall();
        Owner::at(self.context.info.id, wall, &*env.entropy)
    }

    /// Returns the claim of the next attempt, and the instant from which its lease counts.
    fn claim(&self, limits: &Limits) -> (Arc<Claim>, BootInstant) {
        let env = &self.context.env;
        let sent = env.clock.now();
        let info = Arc::clone(&self.context.info);
        let wall = env.clock.wall();
        let claim = Claim::new(self.key.clone(), limits.owner, self.ttl, wall, info)
            .with_delay(self.delay)
            .with_mode(self.mode)
            .with_wait(self.wait());
        (Arc::new(claim), sent)
    }

    async fn attempt(
        &self,
        claim: &Arc<Claim>,
        sent: BootInstant,
        limits: &mut Limits,
    ) -> Result<Guard, AttemptFailure> {
        let mut asking = Box::pin(ask(Arc::clone(&self.context), Arc::clone(claim), sent));
        let Some(asked) = limits.bound(&self.context, &mut asking).await else {
            self.context.metrics.attempted(AttemptEnd::CutOff);
            // The caller's wait does not cut off the request: a slow member is not a dead one. The
            // request finishes in the background, which releases a grant.
            let (context, claim) = (Arc::clone(&self.context), Arc::clone(claim));
            self.context.clean_up(async move {
                let Asked { answer, owned, .. } = asking.await;
                if needs_release(&answer) {
                    free(&context, &owned).await;
                }
                // Leave last: by now, everything that the attempt left in a queue is there.
                context.session.leave(&claim);
            });
            return Err(AttemptFailure::CutOff);
        };
        let Asked { answer, owned, at } = asked;
        limits.granted = at;
        self.context.metrics.attempted(AttemptEnd::of(&answer));
        let guard = match &answer {
            Ok(Attempt::Granted(grant)) => self.guard(&owned, grant),
            _ => None,
        };
        if guard.is_none() && needs_release(&answer) {
            // The wait continues with a new owner, so that this release cannot free a later grant if it
            // arrives late.
            limits.owner = self.new_owner();
            let (context, claim) = (Arc::clone(&self.context), Arc::clone(claim));
            self.context.clean_up(async move {
                free(&context, &owned).await;
                context.session.leave(&claim);
            });
        }
        match answer {
            Ok(Attempt::Granted(_)) => guard.ok_or(AttemptFailure::CutOff),
            Ok(Attempt::Busy(busy)) => Err(AttemptFailure::Busy(busy)),
            Err(error) => Err(AttemptFailure::Failed(error)),
        }
    }

    fn goes_on(
        &self,
        failure: &AttemptFailure,
        outage: &OutageDeadline,
        now: BootInstant,
        limits: &Limits,
    ) -> bool {
        let WaitPolicy::Wait(wait) = self.wait_policy else {
            return false;
        };
        let in_time = limits.end.is_none_or(|end| now < end);
        match failure {
            AttemptFailure::Busy(_) => in_time,
            AttemptFailure::CutOff => false,
            AttemptFailure::Failed(error) if !error.is_retryable() => false,
            AttemptFailure::Failed(_) => match wait {
                Some(_) => in_time,
                None => self.context.was_answered() || now < outage.end,
            },
        }
    }

    fn give_up(&self, failure: AttemptFailure, began: BootInstant) -> Answer {
        match (failure, self.wait_policy) {
            (AttemptFailure::Busy(_), WaitPolicy::OneAttempt) => Ok(None),
            (AttemptFailure::Busy(busy), WaitPolicy::Wait(_)) => {
                let holder = match busy.holder {
                    Some(owner) => format!("client {}", owner.client()),
                    None => "another client".into(),
                };
                let waited = self.context.now().since(began);
                let text = format!("still held by {holder} after {waited:.1?}");
                Err(Error::new(ErrorKind::Busy, text).with_key(&self.key))
            }
            (AttemptFailure::Failed(error), _) => Err(error.with_key(&self.key)),
            (AttemptFailure::CutOff, _) => {
                Err(no_answer_in_the_wait(&self.context).with_key(&self.key))
            }
        }
    }
}

/// What came of one attempt.
struct Asked {
    answer: Result<Attempt, Error>,
    /// The claim of the owner that has the lease, if the store granted one.
    owned: Arc<Claim>,
    /// The time of a grant, if the clock was read.
    at: Option<BootInstant>,
}

/// Asks the store once. If leases expire, an answer that took longer than a third of the TTL is
/// discarded, because too little of the lease is left.
async fn ask(context: Arc<ClientContext>, claim: Arc<Claim>, sent: BootInstant) -> Asked {
    let asking = context.session.acquire(&claim);
    if context.guarantees.expiry == Expiry::WithProcess {
        let answer = asking.await;
        return Asked {
            owned: owned(&claim, answer.as_ref().ok()),
            answer,
            at: None,
        };
    }
    let third = claim.usable_ttl() / 3;
    let limit = third.min(Claim::LIMIT_MAX);
    let too_late = || {
        let text = format!("no answer within {limit:?}");
        Error::new(ErrorKind::Unreachable, text)
            .with_store(context.store.to_string())
            .with_unknown_effect()
    };
    let answer = clock::within(&*context.env.clock, sent + limit, asking).await;
    let grant = match &answer {
        Some(Ok(Attempt::Granted(grant))) => Some(grant),
        _ => None,
    };
    let sent = grant.map_or(sent, |grant| grant.term.since);
    let at = grant.map(|_| context.now());
    let owned = owned(&claim, answer.as_ref().and_then(|it| it.as_ref().ok()));
    let is_late = at.is_some_and(|at| at >= sent + third);
    let at = at.filter(|_| !is_late);
    let answer = match answer.filter(|_| !is_late) {
        Some(answer) => answer,
        None => Err(too_late()),
    };
    Asked { answer, owned, at }
}

/// Returns the claim with the owner that the store granted the lease to.
fn owned(claim: &Arc<Claim>, attempt: Option<&Attempt>) -> Arc<Claim> {
    let owner = match attempt {
        Some(Attempt::Granted(grant)) => grant.owner,
        _ => None,
    };
    match owner.filter(|owner| *owner != claim.owner) {
        Some(owner) => Arc::new(Claim::clone(claim).with_owner(owner)),
        None => Arc::clone(claim),
    }
}

fn needs_release(answer: &Result<Attempt, Error>) -> bool {
    match answer {
        Ok(Attempt::Granted(_)) => true,
        Ok(Attempt::Busy(_)) => false,
        Err(error) => error.effect() == Effect::Unknown,
    }
}

async fn free(context: &ClientContext, claim: &Claim) {
    let outcome = context.session.release(claim).await;
    tracing::debug!(key = %claim.key, ?outcome, "freed an attempt that was not used");
}

fn no_answer_in_the_wait(context: &ClientContext) -> Error {
    Error::new(ErrorKind::Unreachable, "no answer within the wait")
        .with_store(context.store.to_string())
        .with_unknown_effect()
}
