//! The state of a session, and the leases that its requests use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future;
use leasehold::clock::{BootInstant, within};
use leasehold::store::{BoxFuture, LockRequest, PerRuntime, SessionContext, Term, locked};
use leasehold::{Error, ErrorKind};
use tokio_util::task::TaskTracker;

use super::crowds::Crowds;
use super::leases::{OwnLeases, UsedKeys, seconds};
use super::pool::{Lease, LeasePool};
use super::successors::Successors;
use crate::client::{EtcdClient, Failure};
use crate::locking::{Names, SharedLease, Snapshot, random_number, range};
use crate::proto::{LeaseGrantRequest, LeaseRevokeRequest, TxnRequest, TxnResponse};
use crate::settings::Settings;

/// What all requests of a client share.
#[derive(Debug)]
pub(super) struct EtcdInner {
    settings: Arc<Settings>,
    /// For attempts, and for the first try of a release.
    callers: PerRuntime<EtcdClient>,
    /// For all the rest, on the thread of the client.
    pub(super) client: Arc<EtcdClient>,
    pub(super) context: SessionContext,
    pub(super) names: Names,
    pub(super) own: OwnLeases,
    pub(super) used: UsedKeys,
    pub(super) pool: LeasePool,
    pub(super) successors: Successors,
    pub(super) crowds: Crowds,
    /// For which hour the client knows that a shared lease exists.
    shared: Mutex<HashMap<SharedLease, u64>>,
    /// The tasks that end leases without an entry, also on the runtimes of callers. A runtime may be idle from now on.
    leftovers: TaskTracker,
}

/// How often a request is tried again because another client wrote the entry of the lock at the same moment.
pub(super) const TRIES: usize = 10;

/// The error after the last try.
pub(super) fn too_many_changes() -> Error {
    let text = "the entry of the lock changed again and again";
    Error::new(ErrorKind::Unreachable, text)
}

impl EtcdInner {
    pub(super) fn new(settings: Arc<Settings>, context: SessionContext) -> Self {
        let leftovers = TaskTracker::new();
        leftovers.close();
        let client = EtcdClient::new(Arc::clone(&settings), context.clone(), None);
        let client = Arc::new(client);
        Self {
            names: Names::new(&settings.prefix),
            callers: PerRuntime::new(Arc::clone(&client), &context),
            client,
            settings,
            context,
            own: OwnLeases::default(),
            used: UsedKeys::default(),
            pool: LeasePool::default(),
            successors: Successors::default(),
            crowds: Crowds::default(),
            shared: Mutex::default(),
            leftovers,
        }
    }

    /// Returns the client whose connection the runtime of the caller drives.
    pub(super) async fn here(&self) -> Arc<EtcdClient> {
        let open = |runtime| {
            let (env, info) = (self.context.env().clone(), self.context.client());
            let context = SessionContext::new(env, Arc::clone(info), runtime);
            let fallback = Some(Arc::clone(&self.client));
            let settings = Arc::clone(&self.settings);
            Arc::new(EtcdClient::new(settings, context, fallback))
        };
        self.callers.here(open, EtcdClient::is_open).await
    }

    pub(super) fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }

    /// Returns the lease that a request asks for if it finds none in the pool.
    pub(super) fn new_lease(&self, request: &LockRequest) -> Lease {
        Lease {
            id: random_number(request.owner),
            seconds: seconds(request.ttl),
            term: Term::new(self.now(), Duration::ZERO),
        }
    }

    /// Asks for the lease of a request, unless it has a `pooled` one, and for that of the fences. Returns the term of the former, and
    /// the id of the latter.
    pub(super) async fn leases(
        &self,
        client: &EtcdClient,
        request: &LockRequest,
        pooled: Option<Lease>,
    ) -> Result<(Term, i64), Error> {
        let fence_lease = self.shared_lease(client, SharedLease::Fences, request.limit());
        let lease = async {
            match pooled {
                Some(lease) => Ok(lease.term),
                None => self.grant_lease(client, request).await,
            }
        };
        match future::join(lease, fence_lease).await {
            (Ok(term), Ok(fence_lease)) => Ok((term, fence_lease)),
            (Err(error), _) => Err(error),
            // The lease of the request may exist.
            (Ok(_), Err(error)) => Err(error.with_unknown_effect()),
        }
    }

    /// Asks for a new lease for a request. No key is sent before the answer: once the lease was granted, a revocation
    /// stops everything that arrives late. A lease is asked for only once, since a copy of the question that arrives
    /// after the revocation would undo it.
    pub(super) async fn grant_lease(
        &self,
        client: &EtcdClient,
        request: &LockRequest,
    ) -> Result<Term, Error> {
        let since = self.now();
        let question = LeaseGrantRequest {
            ttl: seconds(request.ttl),
            id: random_number(request.owner),
        };
        let granted = client.call(question, request.limit()).await?;
        let ttl = Duration::from_secs(u64::try_from(granted.ttl).unwrap_or_default());
        Ok(Term::new(since, ttl))
    }

    /// Returns the id of a lease that many keys share. Asks for it at its first use by this client.
    pub(super) async fn shared_lease(
        &self,
        client: &EtcdClient,
        lease: SharedLease,
        limit: Duration,
    ) -> Result<i64, Error> {
        let span = SharedLease::span(self.context.env().clock.wall());
        let id = lease.id(&self.names, span);
        if locked(&self.shared).get(&lease) == Some(&span) {
            return Ok(id);
        }
        let ttl = seconds(lease.ttl());
        match client.call(LeaseGrantRequest { ttl, id }, limit).await {
            Ok(_) | Err(Failure::LeaseExists) => {
                locked(&self.shared).insert(lease, span);
                Ok(id)
            }
            // Nothing of the lock was sent yet.
            Err(failure) => Err(failure.into_error().without_effect()),
        }
    }

    /// Reads the entries of the lock of a request.
    pub(super) async fn snapshot(
        &self,
        client: &EtcdClient,
        request: &LockRequest,
    ) -> Result<Snapshot, Error> {
        let question = range(self.names.all(&request.key));
        let found = client.call(question, request.limit()).await?;
        Ok(Snapshot::read(&self.names, &request.key, found))
    }

    /// Reads the entries of the lock of a request on the thread of the client, so that no waiter depends on another one that
    /// is not polled.
    pub(super) fn read(
        self: &Arc<Self>,
        request: &Arc<LockRequest>,
    ) -> BoxFuture<'static, Result<Arc<Snapshot>, Error>> {
        let (reader, request) = (Arc::clone(self), Arc::clone(request));
        self.context.spawn_with_answer(async move {
            let client = Arc::clone(&reader.client);
            reader.snapshot(&client, &request).await.map(Arc::new)
        })
    }

    /// Puts a lease into the pool, and notes that its key does not exist, if the server has answered all requests that name
    /// them. Otherwise revokes the lease.
    pub(super) fn give_back(
        &self,
        client: &Arc<EtcdClient>,
        (key, lease): (&[u8], Lease),
        is_unused: bool,
    ) {
        if !is_unused {
            return self.revoke_in_background(client, lease.id);
        }
        self.used.put(&self.names, key);
        if let Some(surplus) = self.pool.put(lease, self.now()) {
            self.revoke_in_background(client, surplus);
        }
    }

    /// Revokes a lease without an entry. Without an answer, it ends by itself.
    fn revoke_in_background(&self, client: &Arc<EtcdClient>, id: i64) {
        let (revoking, limit) = (Arc::clone(client), LockRequest::LIMIT_MAX);
        let revoking = async move {
            let _ = revoking.call(LeaseRevokeRequest { id }, limit).await;
        };
        client.spawn(self.leftovers.track_future(revoking));
    }

    /// Revokes the leases of the pool. They hold nothing, so it waits as long as for a request.
    pub(super) async fn flush(&self) {
        let idle = self.pool.drain().into_iter();
        idle.for_each(|id| self.revoke_in_background(&self.client, id));
        let clock = &*self.context.env().clock;
        let limit = clock.now() + LockRequest::LIMIT_MAX;
        let _ = within(clock, limit, self.leftovers.wait()).await;
    }

    /// Asks for the shared leases again at their next use. One of them may have been revoked.
    fn forget_shared_leases(&self) {
        locked(&self.shared).clear();
    }

    /// Carries out a transaction that may write keys with a shared lease.
    pub(super) async fn transact(
        &self,
        client: &EtcdClient,
        question: TxnRequest,
        limit: Duration,
    ) -> Result<TxnResponse, Failure> {
        let answer = client.call(question, limit).await;
        answer.inspect_err(|failure| self.failed(failure))
    }

    /// The same for a transaction of a request for one lock.
    pub(super) async fn transact_batched(
        &self,
        client: &Arc<EtcdClient>,
        (request, question): (&LockRequest, TxnRequest),
    ) -> Result<TxnResponse, Failure> {
        let limit = request.limit();
        let answer = client.call_batched(&request.key, question, limit).await;
        answer.inspect_err(|failure| self.failed(failure))
    }

    fn failed(&self, failure: &Failure) {
        if matches!(failure, Failure::NoLease) {
            self.forget_shared_leases();
        }
    }
}
