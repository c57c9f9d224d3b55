use std::sync::Arc;
use std::time::Duration;

use futures_util::future;
use leasehold::clock::{BootInstant, within};
use leasehold::store::{AcquireError, Grant, LockRequest, Permits, Progress, Term};
use leasehold::{Effect, Error, ErrorKind, Fence, Mode};

use super::crowds::Member;
use super::inner::EtcdInner;
use super::leases::{Holding, OwnLease, seconds};
use super::pool::Lease;
use super::release;
use super::successors::{HandOver, Succession, Successor};
use super::waiting::{Told, Waiting, busy, told};
use crate::client::{EtcdClient, Failure, Watch, WatchedKeys};
use crate::locking::{
    Attempt, Condition, Decision, Position, SharedLease, Snapshot, Standing, Step, random_number,
};

/// One call of `acquire`.
struct Acquiring<'a> {
    inner: &'a Arc<EtcdInner>,
    client: &'a Arc<EtcdClient>,
    request: &'a Arc<LockRequest>,
    progress: &'a Progress<'a>,
    /// The other waiters of this client for the lock; `None` if the request does not wait.
    member: Option<&'a Member<'a>>,
    attempt: Attempt<'a>,
    /// The lease of the attempt, with its last confirmed term.
    lease: Lease,
    /// Whether the lease comes from the pool, and so may have ended.
    is_pooled: bool,
    /// Whether a transaction has no answer, so that it can arrive late.
    is_unsure: bool,
    /// When to renew the lease while it waits.
    renews_at: BootInstant,
    last_fence: Option<Fence>,
    /// How often the lock was free, but another client was faster or its keys changed.
    tries: u32,
    /// Whether the request has waited, so that its proposal is old.
    has_waited: bool,
    watch: Option<(WatchedKeys, Watch)>,
}

/// What an attempt does next.
enum Next {
    Try(Condition),
    /// Reads the entries of the lock, as they were at this revision or later.
    Look(i64),
    Granted(HandOver),
}

/// Takes the lock: writes an entry with a lease of the pool or a new one.
pub(super) async fn acquire(
    inner: &Arc<EtcdInner>,
    client: &Arc<EtcdClient>,
    request: &Arc<LockRequest>,
    progress: &Progress<'_>,
) -> Result<Grant, AcquireError> {
    // A client whose clock is wrong asks for nothing.
    Fence::after(None, request.proposal)?;
    let member = request.waits.then(|| inner.crowds.join(&request.key));
    let crowd = member.as_ref().filter(|member| !member.is_alone());
    let entering = match crowd {
        Some(crowd) => crowd.enter().await,
        None => None,
    };
    let standing = if request.barges {
        Standing::Barging
    } else {
        Standing::Newcomer
    };
    let pooled = inner.pool.take(seconds(request.ttl), inner.now());
    let lease = pooled.unwrap_or_else(|| inner.new_lease(request));
    let number = random_number(request.owner);
    let mut attempt = Attempt {
        names: &inner.names,
        request,
        lease: lease.id,
        number,
        fence_lease: 0,
        standing,
        announces: request.is_queued(),
    };
    attempt.number = inner.used.take(&request.key, attempt.position(), number);
    // From now on, a release of the request revokes the lease.
    let own = OwnLease::new(attempt.key(), lease, Holding::No);
    inner.own.insert(request.owner, own);
    let leases = Box::pin(inner.leases(client, request, pooled));
    let (term, fence_lease) = leases.await.inspect_err(|error| {
        if error.effect() == Effect::None {
            inner.own.remove(request.owner);
        }
    })?;
    attempt.fence_lease = fence_lease;
    let mut acquiring = Acquiring {
        inner,
        client,
        request,
        progress,
        member: member.as_ref(),
        attempt,
        renews_at: term.since + request.usable_ttl() / 3,
        lease: Lease { term, ..lease },
        is_pooled: pooled.is_some(),
        is_unsure: false,
        last_fence: None,
        tries: 0,
        has_waited: false,
        watch: None,
    };
    // Others of this client wait already, so the lock is not free.
    let condition = match &entering {
        Some(_) if request.is_queued() => Condition::Never,
        _ => Condition::NoOther,
    };
    let first = acquiring.advance(Next::Try(condition)).await;
    drop(entering);
    let answer = acquiring.run(first).await;
    if let Err(AcquireError::Busy(_)) = answer {
        acquiring.leave().await?;
    }
    answer
}

impl<'a> Acquiring<'a> {
    async fn run(&mut self, first: Result<Next, AcquireError>) -> Result<Grant, AcquireError> {
        let mut result = first;
        // The entries are read as they were at this revision or later.
        let mut known = 0;
        loop {
            let next = match result {
                Ok(Next::Granted(HandOver { fence, revision })) => {
                    return Ok(self.granted(fence, revision));
                }
                Ok(Next::Look(revision)) => {
                    known = revision.max(known);
                    Next::Look(known)
                }
                Ok(next) => next,
                Err(AcquireError::Failed(error)) if self.keeps_its_place(&error) => {
                    self.progress.unavailable(error);
                    self.watch = None;
                    self.pause(OUTAGE_PAUSE).await;
                    Next::Look(known)
                }
                Err(AcquireError::Failed(error)) => return Err(error.with_unknown_effect().into()),
                Err(busy) => return Err(busy),
            };
            result = self.advance(next).await;
        }
    }

    async fn advance(&mut self, next: Next) -> Result<Next, AcquireError> {
        // What a request needs is freed before the wait.
        match next {
            Next::Try(condition) => Box::pin(self.step(condition)).await,
            Next::Look(revision) => {
                let snapshot = Box::pin(self.look(revision)).await?;
                self.decide(snapshot).await
            }
            Next::Granted(_) => Ok(next),
        }
    }

    fn granted(&self, fence: Fence, revision: i64) -> Grant {
        let in_queue = !matches!(
            self.attempt.standing,
            Standing::Barging | Standing::Ahead(_)
        );
        let holding = Holding::Here {
            written: (!self.is_unsure).then_some(revision),
            passes_on: in_queue,
        };
        let own = OwnLease::new(self.attempt.key(), self.lease, holding);
        self.inner.own.insert(self.request.owner, own);
        Grant::new(fence, self.lease.term)
    }

    /// Whether the wait goes on after this error. The entry lives as long as its lease.
    fn keeps_its_place(&self, error: &Error) -> bool {
        let end = self.lease.term.since + self.lease.term.ttl.unwrap_or_default();
        self.request.waits && self.has_entry() && error.is_unreachable() && self.inner.now() < end
    }

    /// Tries to take the lock. Meanwhile renews the lease of a waiter if it is not fresh, so that little of its term is
    /// over when it has the lock.
    async fn step(&mut self, condition: Condition) -> Result<Next, AcquireError> {
        let wall = if self.has_waited {
            let now = self.inner.context.env().clock.wall();
            now.max(self.request.proposal)
        } else {
            self.request.proposal
        };
        let fence = Fence::after(self.last_fence, wall)?;
        let limit = self.request.limit();
        // A wait can outlast the lease that it began with.
        let fence_lease = self
            .inner
            .shared_lease(self.client, SharedLease::Fences, limit);
        self.attempt.fence_lease = fence_lease.await?;
        let question = self.attempt.take(condition, fence);
        let question = (&**self.request, question);
        let asked = self.inner.transact_batched(self.client, question);
        let (answer, renewed) = future::join(asked, self.renewed_term()).await;
        let answer = match answer {
            Err(Failure::NoLease) if self.is_pooled && !self.has_entry() => {
                self.grant_lease().await?;
                return Ok(Next::Try(condition));
            }
            Err(failure) => {
                self.is_unsure = true;
                return Err(failure.into_error().into());
            }
            Ok(answer) => answer,
        };
        let Some(term) = renewed? else {
            return Err(self.over());
        };
        self.lease.term = term;
        let step = self.attempt.read(answer, fence).ok_or_else(|| {
            let text = "the answer to a transaction has another form";
            Error::new(ErrorKind::InvalidResponse, text)
        })?;
        match step {
            Step::Granted(fence, revision) => Ok(Next::Granted(HandOver { fence, revision })),
            Step::FencePassed(last) => {
                self.last_fence = Some(last);
                Ok(Next::Try(condition))
            }
            Step::Entered(created) => {
                self.attempt.standing = self.attempt.standing.with_entry(created);
                Ok(Next::Look(created))
            }
            Step::NotFree(revision) => Ok(Next::Look(revision)),
            Step::KeyInUse => Err(self.over()),
        }
    }

    /// Has a lease granted in place of that of the pool, which ended. The transaction that named it had no effect.
    async fn grant_lease(&mut self) -> Result<(), Error> {
        self.is_pooled = false;
        self.lease = self.inner.new_lease(self.request);
        self.attempt.lease = self.lease.id;
        let own = OwnLease::new(self.attempt.key(), self.lease, Holding::No);
        self.inner.own.insert(self.request.owner, own);
        let granted = self.inner.grant_lease(self.client, self.request);
        self.lease.term = granted.await?;
        Ok(())
    }

    /// Returns the term of the lease, renewed if it is not fresh; `None` if the lease ended.
    async fn renewed_term(&self) -> Result<Option<Term>, Error> {
        let age = self.inner.now().since(self.lease.term.since);
        if age < self.request.usable_ttl() / 6 {
            return Ok(Some(self.lease.term));
        }
        self.renew().await
    }

    async fn renew(&self) -> Result<Option<Term>, Error> {
        let since = self.inner.now();
        let limit = self.request.limit();
        let renewed = self.client.keep_alive(self.attempt.lease, limit).await?;
        Ok(renewed.map(|ttl| Term::new(since, ttl)))
    }

    /// Reads the entries of the lock. Waiters of one client read them together.
    async fn look(&self, at_least: i64) -> Result<Arc<Snapshot>, AcquireError> {
        let crowd = self.member.filter(|member| !member.is_alone());
        let snapshot = match crowd {
            Some(crowd) => {
                crowd
                    .read(|| self.inner.read(self.request), at_least)
                    .await?
            }
            None => Arc::new(self.inner.snapshot(self.client, self.request).await?),
        };
        Ok(snapshot)
    }

    /// Decides what the entries mean, and waits if others come first.
    async fn decide(&mut self, snapshot: Arc<Snapshot>) -> Result<Next, AcquireError> {
        let standing = self.attempt.standing;
        if let Some(created) = standing.created()
            && !snapshot.has(&self.attempt.key(), created)
        {
            // An operator or another client removed the entry, or its lease ended.
            return Err(self.over());
        }
        let decision = snapshot.decide(standing, self.request.mode);
        let revision = snapshot.revision;
        match decision {
            Decision::Free => Ok(Next::Try(self.condition(revision).await)),
            Decision::PermitsDiffer(permits) => Err(self.permits_differ(permits).await),
            Decision::Behind(_) | Decision::Full(_) => {
                let busy = busy(&snapshot, &decision);
                drop(snapshot);
                if !self.request.waits {
                    return Err(AcquireError::Busy(busy));
                }
                self.progress.busy(busy);
                self.wait(&decision, revision).await
            }
        }
    }

    /// Returns how to take a lock that was free at this revision. What disturbs one condition leaves the other one alone, so they
    /// take turns.
    async fn condition(&mut self, revision: i64) -> Condition {
        self.tries += 1;
        if self.tries > 2 {
            self.pause(TRY_PAUSE).await;
        }
        // Clients of other libraries that come from now on wait for the entry.
        self.attempt.announces = true;
        match self.attempt.standing {
            Standing::Newcomer | Standing::Barging => Condition::UnchangedSince(revision),
            Standing::Queued(_) if self.tries % 2 == 1 => Condition::UnchangedSince(revision),
            Standing::Queued(_) | Standing::Ahead(_) => Condition::NoGrantSince(revision),
        }
    }

    /// Makes the waiter the successor of the owner directly before it, should that be an owner of this client.
    fn succession(&self, decision: &Decision) -> Option<Succession<'a>> {
        let (Decision::Behind(entry), Mode::Exclusive) = (decision, self.request.mode) else {
            return None;
        };
        let Standing::Queued(created) = self.attempt.standing else {
            return None;
        };
        let inner: &'a EtcdInner = self.inner;
        let owner = entry
            .owner()
            .filter(|_| entry.position == Position::Queue)?;
        Some(inner.successors.enter(owner, |granted| Successor {
            request: Arc::clone(self.request),
            lease: self.attempt.lease,
            number: self.attempt.number,
            fence_lease: self.attempt.fence_lease,
            created,
            granted,
        }))
    }

    /// Waits until the watch reports that it may be the turn of this client, or until another guard of this client passes the
    /// lock on. Keeps the lease meanwhile.
    async fn wait(&mut self, decision: &Decision, revision: i64) -> Result<Next, AcquireError> {
        self.has_waited = true;
        let waiting = Waiting::of(&self.inner.names, self.request, decision, revision);
        let is_second = match decision {
            Decision::Behind(entry) => entry.is_held() && self.request.mode == Mode::Exclusive,
            _ => false,
        };
        let mut succession = self.succession(decision);
        let clock = &*self.inner.context.env().clock;
        loop {
            let mut watch = self.watch.take();
            let changed = within(
                clock,
                self.renews_at,
                told(self.client, &mut watch, &waiting),
            );
            let news = match &mut succession {
                None => Ok(changed.await),
                Some(succession) => tokio::select! {
                    biased;
                    granted = succession.granted() => Err(granted),
                    news = changed => Ok(news),
                },
            };
            self.watch = watch;
            match news {
                Err(granted) => return self.succeed(granted, revision).await,
                Ok(None) => {
                    self.keep_lease().await?;
                    // The others wait for a client that waits itself, and that does look.
                    if is_second {
                        return Ok(Next::Look(revision));
                    }
                }
                Ok(Some(Told::Nothing)) => {
                    self.watch = None;
                    self.pause(OUTAGE_PAUSE).await;
                    return Ok(Next::Look(revision));
                }
                Ok(Some(told)) => {
                    if let Some(succession) = &mut succession
                        && succession.is_under_way()
                    {
                        // The entry before this one is gone because a release passes the lock on. If its caller no longer
                        // polls it, the waiter asks the server.
                        let end = self.inner.now() + self.request.limit();
                        let granted = within(clock, end, succession.granted()).await;
                        return self.succeed(granted.flatten(), revision).await;
                    }
                    return Ok(match told {
                        Told::LastGrantAt(revision) if self.is_queued() => {
                            Next::Try(Condition::LastGrantAt(revision))
                        }
                        Told::LastGrantAt(_) | Told::Nothing => Next::Look(revision),
                        Told::Changed(revision) => Next::Look(revision),
                    });
                }
            }
        }
    }

    /// Ends an attempt that found the lock busy.
    async fn leave(&self) -> Result<(), Error> {
        if self.has_entry() || self.is_unsure {
            let releasing = Box::pin(release::release(self.inner, self.request));
            return releasing
                .await
                .map(drop)
                .map_err(Error::with_unknown_effect);
        }
        let is_unused = self.inner.own.end(self.request.owner, 0);
        let own = (&*self.attempt.key(), self.lease);
        self.inner.give_back(self.client, own, is_unused);
        Ok(())
    }

    fn has_entry(&self) -> bool {
        self.attempt.standing.created().is_some()
    }

    fn is_queued(&self) -> bool {
        matches!(self.attempt.standing, Standing::Queued(_))
    }

    /// Takes over what a release passed on, or looks if it could not.
    async fn succeed(
        &mut self,
        granted: Option<HandOver>,
        revision: i64,
    ) -> Result<Next, AcquireError> {
        let Some(granted) = granted else {
            return Ok(Next::Look(revision));
        };
        match Box::pin(self.renewed_term()).await {
            Ok(Some(term)) => self.lease.term = term,
            Ok(None) => return Err(self.over()),
            Err(error) => return Err(error.with_unknown_effect().into()),
        }
        Ok(Next::Granted(granted))
    }

    /// Renews the lease of a waiter. Asks again later if there is no answer.
    async fn keep_lease(&mut self) -> Result<(), AcquireError> {
        let env = self.inner.context.env();
        match Box::pin(self.renew()).await {
            Ok(Some(term)) => {
                self.lease.term = term;
                let third = self.request.usable_ttl() / 3;
                self.renews_at = term.since + env.random_span(third * 4 / 5, third);
                Ok(())
            }
            Ok(None) => Err(self.over()),
            Err(error) if self.keeps_its_place(&error) => {
                self.progress.unavailable(error);
                let (least, most) = OUTAGE_PAUSE;
                self.renews_at = self.inner.now() + env.random_span(least, most);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn pause(&self, (least, most): (Duration, Duration)) {
        let env = self.inner.context.env();
        let span = env.random_span(least, most);
        env.clock.sleep_until(self.inner.now() + span).await;
    }

    /// Returns the error of an entry that is gone. The client has no place from now on.
    fn over(&mut self) -> AcquireError {
        self.attempt.standing = Standing::Newcomer;
        let text = "the lease of the waiter ended, and its place in the queue with it";
        let error = Error::new(ErrorKind::Unreachable, text);
        error.with_unknown_effect().into()
    }

    async fn permits_differ(&self, held: Permits) -> AcquireError {
        let wanted = self.request.mode.permits().map_or(0, Permits::get);
        let error = Error::permits_differ(held, wanted);
        match Box::pin(release::release(self.inner, self.request)).await {
            Ok(_) => error.into(),
            Err(_) => error.with_unknown_effect().into(),
        }
    }
}

/// The pause of a waiter whose server does not answer.
const OUTAGE_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// The pause before the lock is tried again, after others were faster.
const TRY_PAUSE: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));
