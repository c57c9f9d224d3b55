use std::sync::Arc;

use futures_util::future;
use leasehold::clock::within;
use leasehold::store::{AcquireError, Busy, Grant, LockRequest, Permits, Progress, Term};
use leasehold::{Error, ErrorKind, Fence, Mode};

use super::inner::Inner;
use super::leases::OwnLease;
use super::release;
use super::successors::{HandOver, Succession, Successor};
use crate::client::{EtcdClient, Watch, WatchedKeys};
use crate::locking::{
    Attempt, Condition, Decision, Entry, Look, Position, SharedLease, Standing, Step, decide,
    lease_id, proposal,
};

/// One call of `acquire`.
struct Acquiring<'a> {
    inner: &'a Arc<Inner>,
    client: &'a EtcdClient,
    request: &'a Arc<LockRequest>,
    progress: &'a Progress<'a>,
    attempt: Attempt<'a>,
    /// The last confirmed term of the lease.
    term: Term,
    last_fence: Option<Fence>,
    /// Whether the request has waited, so that its proposal is old.
    has_waited: bool,
    watch: Option<(WatchedKeys, Watch)>,
}

/// Takes the lock: has a lease granted, and writes an entry with it.
pub(super) async fn acquire(
    inner: &Arc<Inner>,
    client: &Arc<EtcdClient>,
    request: &Arc<LockRequest>,
    progress: &Progress<'_>,
) -> Result<Grant, AcquireError> {
    let fence_lease = inner.shared_lease(client, SharedLease::Fences, request.limit());
    let granted = inner.grant_lease(client, request);
    let (granted, fence_lease) = future::join(granted, fence_lease).await;
    let (term, fence_lease) = match (granted, fence_lease) {
        (Ok(term), Ok(fence_lease)) => (term, fence_lease),
        (Err(error), _) => return Err(error.into()),
        // The lease of the request may exist.
        (Ok(_), Err(error)) => return Err(error.with_unknown_effect().into()),
    };
    let standing = if request.barges {
        Standing::Barging
    } else {
        Standing::Newcomer
    };
    let lease = lease_id(request.owner);
    let mut attempt = Attempt {
        names: &inner.names,
        request,
        lease,
        number: lease,
        fence_lease,
        standing,
    };
    attempt.number = inner.used.take(&request.key, attempt.position(), lease);
    let own = OwnLease {
        key: attempt.key(),
        is_held: false,
        granted: None,
    };
    inner.own.insert(request.owner, own);
    let acquiring = Acquiring {
        inner,
        client,
        request,
        progress,
        attempt,
        term,
        last_fence: None,
        has_waited: false,
        watch: None,
    };
    let answer = acquiring.run().await;
    if let Err(AcquireError::Busy(_)) = answer {
        // It has no entry, so no other client waits for the end of its lease.
        release::revoke_in_background(inner, client, request);
    }
    answer
}

impl<'a> Acquiring<'a> {
    async fn run(mut self) -> Result<Grant, AcquireError> {
        let mut condition = Condition::NoOther;
        loop {
            match self.step(condition).await {
                Ok(Step::Granted(fence, revision)) => return Ok(self.granted(fence, revision)),
                Ok(Step::FencePassed(last)) if last < Fence::MAX => self.last_fence = Some(last),
                Ok(Step::FencePassed(last)) => return Err(used_up(last).into()),
                Ok(Step::Look(look)) => match self.looked(*look).await? {
                    Next::Try(next) => condition = next,
                    Next::Granted(HandOver { fence, revision }) => {
                        let term = self.renewed_term().await;
                        self.term = term.map_err(Error::with_unknown_effect)?;
                        return Ok(self.granted(fence, revision));
                    }
                },
                Err(error) if self.keeps_its_place(&error) => {
                    self.progress.unavailable(error);
                    self.watch = None;
                    self.inner.context.env().poll_pause().await;
                    condition = Condition::NoOther;
                }
                Err(error) => return Err(error.with_unknown_effect().into()),
            }
        }
    }

    fn granted(&self, fence: Fence, revision: i64) -> Grant {
        let own = OwnLease {
            key: self.attempt.key(),
            is_held: true,
            granted: (self.attempt.standing != Standing::Barging).then_some(revision),
        };
        self.inner.own.insert(self.request.owner, own);
        Grant::new(fence, self.term)
    }

    /// Whether the wait goes on after this error. The entry in the queue lives as long as its lease.
    fn keeps_its_place(&self, error: &Error) -> bool {
        let is_queued = matches!(self.attempt.standing, Standing::Queued(_));
        let end = self.term.since + self.term.ttl.unwrap_or_default();
        is_queued && error.is_unreachable() && self.inner.now() < end
    }

    /// Tries to take the lock. Meanwhile renews the lease of a waiter if it is not fresh, so that little of its term is
    /// over when it has the lock.
    async fn step(&mut self, condition: Condition) -> Result<Step, Error> {
        let wall = if self.has_waited {
            self.inner
                .context
                .env()
                .clock
                .wall()
                .max(self.request.proposal)
        } else {
            self.request.proposal
        };
        let fence = proposal(wall, self.last_fence);
        let limit = self.request.limit();
        // A wait can outlast the lease that it began with.
        let fence_lease = self
            .inner
            .shared_lease(self.client, SharedLease::Fences, limit);
        self.attempt.fence_lease = fence_lease.await?;
        let question = self.attempt.take(condition, fence);
        let asked = self.inner.transact(self.client, question, limit);
        let (answer, renewed) = future::join(asked, self.renewed_term()).await;
        let answer = answer?;
        self.term = renewed?;
        self.attempt.read(answer, fence).ok_or_else(|| {
            let text = "the answer to a transaction has another form";
            Error::new(ErrorKind::InvalidResponse, text)
        })
    }

    async fn renewed_term(&self) -> Result<Term, Error> {
        let since = self.inner.now();
        if since.since(self.term.since) < self.request.usable_ttl() / 6 {
            return Ok(self.term);
        }
        let renewing = self
            .client
            .keep_alive(self.attempt.lease, self.request.limit());
        match renewing.await? {
            Some(ttl) => Ok(Term::new(since, ttl)),
            None => Err(over()),
        }
    }

    /// Decides what a look means, and waits if others come first.
    async fn looked(&mut self, mut look: Look) -> Result<Next, AcquireError> {
        match self.attempt.standing {
            // The transaction that looked has also put the entry.
            Standing::Newcomer if look.is_queued => {
                self.attempt.standing = Standing::Queued(look.revision);
            }
            // An operator or another client removed or broke the entry, or its lease ended.
            Standing::Newcomer if self.request.is_queued() => return Err(over().into()),
            Standing::Queued(_) if !look.is_queued => return Err(over().into()),
            _ => {}
        }
        let decision = self.decided(&mut look).await?;
        let (watched, before) = match decision {
            Decision::Free => return Ok(Next::Try(Condition::UnchangedSince(look.revision))),
            Decision::PermitsDiffer(permits) => return Err(self.permits_differ(permits).await),
            Decision::Behind(ref entry) => {
                let keys = WatchedKeys {
                    key: entry.key.clone(),
                    range_end: Vec::new(),
                    // A holder that shares its lock from now on writes its entry again.
                    puts: self.request.mode == Mode::Shared,
                };
                (keys, vec![entry.key.clone()])
            }
            Decision::Full(ref before) => {
                let (key, range_end) = self.inner.names.all(&self.request.key);
                let puts = false;
                (
                    WatchedKeys {
                        key,
                        range_end,
                        puts,
                    },
                    before.clone(),
                )
            }
        };
        let busy = busy(&look, &decision);
        if !self.request.waits {
            return Err(AcquireError::Busy(busy));
        }
        self.progress.busy(busy);
        let mut succession = self.succession(&decision);
        let (clock, limit) = (&*self.inner.context.env().clock, self.request.limit());
        let waiting = self.wait(watched, look.revision, before);
        let Some(succession) = &mut succession else {
            return Ok(Next::Try(waiting.await));
        };
        let next = tokio::select! {
            biased;
            granted = succession.granted() => granted.map(Next::Granted),
            condition = waiting => match succession.is_under_way() {
                // The entry before this one is gone because a release passes the lock on. If its caller no longer polls it,
                // the waiter asks the server.
                true => {
                    let granted = within(clock, clock.now() + limit, succession.granted());
                    granted.await.flatten().map(Next::Granted)
                }
                false => Some(Next::Try(condition)),
            },
        };
        Ok(next.unwrap_or(Next::Try(Condition::NoOther)))
    }

    /// Makes the waiter the successor of the owner directly before it, should that be an owner of this client.
    fn succession(&self, decision: &Decision) -> Option<Succession<'a>> {
        let (Decision::Behind(entry), Mode::Exclusive) = (decision, self.request.mode) else {
            return None;
        };
        let Standing::Queued(created) = self.attempt.standing else {
            return None;
        };
        let inner: &'a Inner = self.inner;
        let is_next = entry.position == Position::Queue && entry.lease != 0;
        is_next.then(|| {
            inner.successors.enter(entry.lease, |granted| Successor {
                request: Arc::clone(self.request),
                number: self.attempt.number,
                fence_lease: self.attempt.fence_lease,
                created,
                granted,
            })
        })
    }

    /// Reads further entries until they decide.
    async fn decided(&self, look: &mut Look) -> Result<Decision, Error> {
        loop {
            let decision = decide(&look.entries, self.attempt.standing, self.request.mode);
            let more = match decision {
                Decision::Free | Decision::Full(_) => look.more_before,
                Decision::Behind(_) | Decision::PermitsDiffer(_) => None,
            };
            let Some(created) = more else {
                return Ok(decision);
            };
            let page = self.attempt.entries_before(created, PAGE);
            let page = self.client.call(page, self.request.limit()).await;
            let page = page.map_err(|failure| failure.into_error().with_unknown_effect())?;
            self.attempt.add(look, &page);
        }
    }

    /// Waits until the watched key is gone, or until few enough of `before` are left for a permit. A watch on a server
    /// that was stopped says nothing, so the wait ends after the limit of a request in any case.
    ///
    /// Returns how to try again: a client that heard nothing only looks.
    async fn wait(&mut self, keys: WatchedKeys, revision: i64, before: Vec<Vec<u8>>) -> Condition {
        self.has_waited = true;
        let env = self.inner.context.env();
        let end = self.inner.now() + self.request.limit();
        let permits = self.request.mode.permits().map_or(1, Permits::get) as usize;
        let (client, open) = (self.client, &mut self.watch);
        let changed = async {
            // A watch that is open already has reported all changes since the last look.
            if open.as_ref().is_none_or(|(watched, _)| *watched != keys) {
                let mut watch = client.current()?.watches().watch(&keys);
                let begun = watch.begun().await?;
                *open = Some((keys.clone(), watch));
                if begun > revision {
                    // Something changed in between, perhaps here.
                    return Some(Condition::Unknown);
                }
            }
            let (_, watch) = open.as_mut()?;
            let mut before = before;
            loop {
                let event = watch.next().await?;
                before.retain(|key| event.deleted() != Some(key.as_slice()));
                if keys.puts || before.len() < permits {
                    return Some(Condition::NoOther);
                }
            }
        };
        match within(&*env.clock, end, changed).await {
            Some(Some(condition)) => condition,
            Some(None) => {
                self.watch = None;
                env.poll_pause().await;
                Condition::Unknown
            }
            None => Condition::Unknown,
        }
    }

    async fn permits_differ(&self, held: Permits) -> AcquireError {
        let wanted = self.request.mode.permits().map_or(0, Permits::get);
        let error = Error::permits_differ(held, wanted);
        match release::release(self.inner, self.request).await {
            Ok(_) => error.into(),
            Err(_) => error.with_unknown_effect().into(),
        }
    }
}

/// How a wait goes on.
enum Next {
    Try(Condition),
    /// Another guard of this client passed the lock on.
    Granted(HandOver),
}

/// How many further entries are read at once.
const PAGE: i64 = 256;

/// Names the holder, if what was read says who it is.
fn busy(look: &Look, decision: &Decision) -> Busy {
    let nearest = match decision {
        Decision::Behind(entry) => Some(&**entry),
        _ => None,
    };
    let mut known = nearest.into_iter().chain(&look.first);
    Busy::by(known.find(|entry| entry.is_held()).and_then(Entry::owner))
}

fn used_up(last: Fence) -> Error {
    let text = format!("the last fence of the lock is {last}, and no fence follows it");
    Error::new(ErrorKind::Corrupt, text).with_unknown_effect()
}

fn over() -> Error {
    let text = "the lease of the waiter ended, and its place in the queue with it";
    Error::new(ErrorKind::Unreachable, text).with_unknown_effect()
}
