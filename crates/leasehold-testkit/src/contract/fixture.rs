use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use leasehold::clock::{Clock as _, SystemClock, WallTime, within};
use leasehold::env::Env;
use leasehold::look::{ClientInfo, Owner};
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Expiry, Grant, Guarantees, Held, Inspection, LeaseTerms,
    LockRequest, Progress, ReleaseReply, Session, SessionContext, Store,
};
use leasehold::{Error, Fence, Key, Mode};
use tokio::runtime::Handle;

use super::worker::Worker;
use crate::faults::{NetworkFault, Proxy};
use crate::harness::{Harness, Suite};

/// What one test works with: keys of its own, and clients that ask for them.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) suite: Suite,
    pub(crate) harness: Arc<dyn Harness>,
    /// The paths to the servers, if the test breaks or counts what passes.
    pub(crate) network: Vec<Proxy>,
    name: &'static str,
    env: Env,
    keys: AtomicU32,
}

/// A store, and a session of a client of its own.
#[derive(Debug)]
pub(crate) struct OpenStore {
    store: Arc<dyn Store>,
    session: Arc<dyn Session>,
    client: Arc<ClientInfo>,
}

/// Long enough for a slow and busy machine. A test that waits longer has failed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A TTL that ends only after [`TIMEOUT`]. A lock that is free earlier was freed, and did not expire.
pub(crate) const LONG: Duration = Duration::from_secs(60);

impl Fixture {
    pub(crate) fn new(
        suite: Suite,
        name: &'static str,
        harness: Arc<dyn Harness>,
        network: Vec<Proxy>,
    ) -> Self {
        Self {
            suite,
            harness,
            network,
            name,
            env: Env::default(),
            keys: AtomicU32::new(0),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Opens the store as another process would.
    pub(crate) fn open(&self) -> OpenStore {
        self.session_of(self.place())
    }

    /// Returns the store, as another process would open it.
    pub(crate) fn place(&self) -> Arc<dyn Store> {
        if self.network.is_empty() {
            return self.harness.open();
        }
        let open_at = self
            .suite
            .open_at
            .expect("a store with servers has an address");
        let ports: Vec<u16> = self.network.iter().map(Proxy::port).collect();
        open_at(&self.harness.address_through(&ports))
    }

    /// Opens a session of a new client.
    pub(crate) fn session_of(&self, store: Arc<dyn Store>) -> OpenStore {
        self.session_in(store, self.env.clone())
    }

    /// Opens a session of a new client, with its own clock.
    pub(crate) fn session_in(&self, store: Arc<dyn Store>, env: Env) -> OpenStore {
        let client = self.client();
        let context = SessionContext::new(env, Arc::clone(&client), Handle::current());
        let session = store.open(context);
        OpenStore {
            store,
            session,
            client,
        }
    }

    /// Returns a key that no other test, and no earlier run, has used.
    pub(crate) fn key(&self) -> Key {
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        let run = self.env.entropy.next_u64();
        Key::new(format!("{}/{number}/{run:x}", self.name)).expect("a valid name")
    }

    pub(crate) fn wall(&self) -> WallTime {
        self.env.clock.wall()
    }

    /// Returns a request of a client of its own.
    pub(crate) fn request(&self, key: &Key, ttl: Duration) -> LockRequest {
        self.request_of(&self.client(), key, ttl)
    }

    /// Returns a new client.
    pub(crate) fn client(&self) -> Arc<ClientInfo> {
        let info = self.env.this_process(Some("contract".into()));
        Arc::new(info)
    }

    pub(crate) fn request_of(
        &self,
        client: &Arc<ClientInfo>,
        key: &Key,
        ttl: Duration,
    ) -> LockRequest {
        let wall = self.wall();
        let owner = Owner::at(client.id, wall, &*self.env.entropy);
        LockRequest::new(key.clone(), owner, ttl, wall, Arc::clone(client))
    }

    /// Waits a little, between two looks at a condition.
    pub(crate) async fn pause(&self) {
        self.env.poll_pause().await;
    }

    pub(crate) fn shared(&self, key: &Key, ttl: Duration) -> LockRequest {
        self.request(key, ttl).with_mode(Mode::Shared)
    }

    /// Sets the fault of every path to a server.
    pub(crate) fn set_network(&self, fault: NetworkFault) {
        for proxy in &self.network {
            proxy.set(fault);
        }
    }

    /// Returns how many requests the servers were sent.
    pub(crate) fn requests(&self) -> u64 {
        self.network.iter().map(Proxy::requests).sum()
    }

    /// Starts another process that holds `key`. Also returns its fence.
    pub(crate) fn worker(&self, key: &Key, ttl: Duration) -> (Worker, u64) {
        Worker::holding(self.suite.name, &self.harness.address(), key.as_str(), ttl)
    }
}

impl OpenStore {
    /// The client of the session.
    pub(crate) fn client(&self) -> &Arc<ClientInfo> {
        &self.client
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn session(&self) -> Arc<dyn Session> {
        Arc::clone(&self.session)
    }

    /// Takes the lock with reports to `progress`, for as long as the caller polls.
    pub(crate) fn acquire_in_session<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        self.session.acquire(request, progress)
    }

    /// Takes the lock with reports to `progress`.
    pub(crate) async fn acquire_with(
        &self,
        request: &LockRequest,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let request = Arc::new(request.clone());
        let asking = self.session.acquire(&request, progress);
        let answer = within(&SystemClock, SystemClock.now() + TIMEOUT, asking).await;
        answer.unwrap_or_else(|| panic!("{}: no answer within {TIMEOUT:?}", request.key))
    }

    /// Takes the lock.
    pub(crate) async fn acquire(&self, request: &LockRequest) -> Result<Grant, AcquireError> {
        self.acquire_with(request, &Progress::new()).await
    }

    /// Frees the lock.
    pub(crate) async fn release(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        self.session.release(&Arc::new(request.clone())).await
    }

    pub(crate) fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    pub(crate) fn terms(&self) -> LeaseTerms {
        self.store.terms()
    }
}

impl Deref for OpenStore {
    type Target = dyn Session;

    fn deref(&self) -> &Self::Target {
        &*self.session
    }
}

impl From<OpenStore> for Arc<dyn Store> {
    fn from(open: OpenStore) -> Self {
        open.store
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until(fixture: &Fixture, what: &str, condition: impl AsyncFn() -> bool) {
    let began = now();
    while !condition().await {
        assert!(began.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        fixture.pause().await;
    }
}

/// Returns the fence of a request, which must be granted.
pub(crate) async fn granted(store: &OpenStore, request: &LockRequest) -> Fence {
    match store.acquire(request).await {
        Ok(grant) => grant.fence,
        other => panic!("{} should be granted: {other:?}", request.key),
    }
}

/// Returns why the store refuses a request.
pub(crate) async fn refusal(store: &OpenStore, request: &LockRequest) -> Error {
    match store.acquire(request).await {
        Err(AcquireError::Failed(error)) => error,
        other => panic!("{} should be refused: {other:?}", request.key),
    }
}

/// Checks that the answer to a request is busy.
pub(crate) async fn busy(store: &OpenStore, request: &LockRequest) {
    match store.acquire(request).await {
        Err(AcquireError::Busy(_)) => {}
        other => panic!("{} should be busy: {other:?}", request.key),
    }
}

pub(crate) async fn released(store: &OpenStore, request: &LockRequest) {
    let outcome = store.release(request).await;
    assert!(
        matches!(outcome, Ok(ReleaseReply::Released)),
        "{} should be freed: {outcome:?}",
        request.key
    );
}

/// Asks with fresh requests until one is granted. Also returns how long that took.
pub(crate) async fn granted_in_time(
    fixture: &Fixture,
    store: &OpenStore,
    key: &Key,
) -> (LockRequest, Duration) {
    let began = now();
    loop {
        let request = fixture.request(key, LONG);
        let answer = store.acquire(&request).await;
        if answer.is_ok() {
            return (request, began.elapsed());
        }
        assert!(
            began.elapsed() < TIMEOUT,
            "{key} is still not free: {answer:?}"
        );
        fixture.pause().await;
    }
}

pub(crate) fn held(request: &LockRequest, fence: Fence) -> Held {
    Held {
        request: Arc::new(request.clone()),
        fence,
    }
}

/// Returns the store's [`Inspection`]; only for tests that need it.
pub(crate) fn inspection(store: &OpenStore) -> &dyn Inspection {
    store.inspection().expect("a store with inspection")
}

/// Returns the store's [`Admin`]; only for tests that need it.
pub(crate) fn admin(store: &OpenStore) -> &dyn Admin {
    store.admin().expect("a store with admin")
}

/// Checks that the lock is free, by taking it.
pub(crate) async fn free(fixture: &Fixture, store: &OpenStore, key: &Key) {
    let request = fixture.request(key, LONG);
    granted(store, &request).await;
    released(store, &request).await;
}

pub(crate) fn expires(guarantees: Guarantees) -> bool {
    guarantees.expiry == Expiry::Lease
}

/// Returns a TTL for leases that must end during the test. It is short, but long enough that a slow machine
/// does not lose them between two lines.
pub(crate) fn short_ttl(store: &OpenStore) -> Duration {
    store.terms().ttl_min.max(Duration::from_millis(1500))
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests measure how long they waited"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
