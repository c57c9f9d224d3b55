//! A whole store: exclusive locks with expiring leases, kept in the memory of one process.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex};

use leasehold::clock::BootInstant;
use leasehold::look::Owner;
use leasehold::store::{
    AcquireError, BoxFuture, Busy, Exclusion, Expiry, Grant, Guarantees, Held, LeaseTerms,
    LockRequest, Order, Progress, ReleaseReply, RenewReply, Session, SessionContext, Store, Term,
    locked, poll_until,
};
use leasehold::{Error, ErrorKind, Fence, Key, LostReason, Mode};

/// Grants exclusive locks within one process, and has none of the optional traits.
#[derive(Clone, Debug, Default)]
pub(crate) struct MinimalStore {
    pub(crate) locks: Arc<Mutex<HashMap<Key, Lock>>>,
}

/// The locks of one client.
#[derive(Debug)]
struct MinimalSession {
    store: MinimalStore,
    context: SessionContext,
}

/// The last grant of a key. The fence outlives the lease, so that the next fence is greater.
#[derive(Debug)]
pub(crate) struct Lock {
    fence: Fence,
    lease: Option<Lease>,
}

#[derive(Debug)]
struct Lease {
    owner: Owner,
    end: BootInstant,
}

impl MinimalSession {
    fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }

    fn try_acquire(&self, request: &LockRequest) -> Result<Grant, AcquireError> {
        if request.mode != Mode::Exclusive {
            let text = format!("{} mode is not offered", request.mode);
            let error = Error::new(ErrorKind::Unsupported, text);
            return Err(error.with_key(&request.key).into());
        }
        let (now, mut locks) = (self.now(), locked(&self.store.locks));
        let last = locks.get(&request.key);
        if let Some(lease) = last.and_then(|lock| lock.current(now)) {
            return Err(AcquireError::Busy(Busy::by(Some(lease.owner))));
        }
        let fence = next_fence(last.map(|lock| lock.fence), request)?;
        let lease = Some(Lease {
            owner: request.owner,
            end: now + request.ttl,
        });
        locks.insert(request.key.clone(), Lock { fence, lease });
        Ok(Grant::new(fence, Term::new(now, request.ttl)))
    }

    fn renew_one(&self, held: &Held) -> RenewReply {
        let (now, mut locks) = (self.now(), locked(&self.store.locks));
        let lock = locks.get_mut(&held.request.key);
        let Some(lease) = lock.and_then(|lock| lock.current_mut(now)) else {
            return RenewReply::Lost(LostReason::Gone);
        };
        if lease.owner != held.request.owner || held.request.mode != Mode::Exclusive {
            return RenewReply::Lost(LostReason::Taken);
        }
        lease.end = now + held.request.ttl;
        RenewReply::Renewed(Term::new(now, held.request.ttl))
    }

    fn free(&self, request: &LockRequest) -> ReleaseReply {
        let (now, mut locks) = (self.now(), locked(&self.store.locks));
        match locks.get_mut(&request.key) {
            Some(lock)
                if lock
                    .current(now)
                    .is_some_and(|lease| lease.owner == request.owner) =>
            {
                lock.lease = None;
                ReleaseReply::Released
            }
            _ => ReleaseReply::WasLost,
        }
    }
}

impl Lock {
    fn current(&self, now: BootInstant) -> Option<&Lease> {
        self.lease.as_ref().filter(|lease| now < lease.end)
    }

    fn current_mut(&mut self, now: BootInstant) -> Option<&mut Lease> {
        self.lease.as_mut().filter(|lease| now < lease.end)
    }
}

/// Returns a fence greater than the last one, and than the client's clock in case the last fence was lost.
fn next_fence(last: Option<Fence>, request: &LockRequest) -> Result<Fence, Error> {
    let floor = last.map_or(0, Fence::get).max(request.proposal.as_micros());
    Fence::new(floor.saturating_add(1)).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidInput,
            "the fences of this lock are used up",
        )
    })
}

impl fmt::Display for MinimalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("minimal store")
    }
}

impl Store for MinimalStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Process, Expiry::Lease, Order::Unordered)
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(MinimalSession {
            store: self.clone(),
            context,
        })
    }
}

impl Session for MinimalSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        let env = self.context.env();
        let attempt = |request: Arc<LockRequest>| ready(self.try_acquire(&request));
        let pause = || self.context.in_runtime(env.poll_pause());
        Box::pin(poll_until(env, request, progress, attempt, pause))
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(async move { leases.iter().map(|held| self.renew_one(held)).collect() })
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        Box::pin(async move { Ok(self.free(request)) })
    }
}
