use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::env::Env;
use leasehold::look::{Holder, Owner, Waiter};
use leasehold::memory::MemoryStore;
use leasehold::store::{
    AcquireError, Grant, LockRequest, Progress, Session, SessionContext, Store,
};
use leasehold::{Client, Key};
use leasehold_testkit::{FaultyStore, StoreCall, virtual_env};
use tokio::runtime::Handle;

/// A client on virtual time, and the store behind it.
pub(crate) struct Fixture {
    pub(crate) env: Env,
    pub(crate) store: FaultyStore,
    /// The store behind `store`, which has the data.
    pub(crate) memory: MemoryStore,
    /// Another client's session of `memory`.
    pub(crate) apart: Arc<dyn Session>,
    pub(crate) client: Client,
}

pub(crate) const TTL: Duration = Duration::from_secs(30);

/// The margin of the deadline, for [`TTL`].
pub(crate) const MARGIN: Duration = Duration::from_millis(3_002);

impl Fixture {
    pub(crate) fn new() -> Self {
        let env = virtual_env(1);
        let memory = MemoryStore::new();
        let store = FaultyStore::new(memory.clone());
        let client = client(store.clone(), &env);
        Self {
            store,
            apart: session(&memory, &env),
            env,
            memory,
            client,
        }
    }

    /// Another client of the same store.
    pub(crate) fn other_client(&self) -> Client {
        client(self.store.clone(), &self.env)
    }

    /// A client that reaches the same locks in a way of its own.
    pub(crate) fn client_apart(&self) -> (Client, FaultyStore) {
        let store = FaultyStore::new(self.memory.clone());
        (client(store.clone(), &self.env), store)
    }

    /// Returns the holders, as the memory store knows them.
    pub(crate) async fn holders(&self, key: &Key) -> Vec<Holder> {
        let inspection = self.apart.inspection().expect("inspection");
        inspection.holders(key).await.expect("an answer")
    }

    /// Returns the waiters, as the memory store knows them.
    pub(crate) async fn waiters(&self, key: &Key) -> Vec<Waiter> {
        let inspection = self.apart.inspection().expect("inspection");
        inspection.waiters(key).await.expect("an answer")
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.env.clock.now()
    }

    pub(crate) async fn pass(&self, span: Duration) {
        self.env.clock.sleep_until(self.now() + span).await;
    }

    /// Gives work in the background the time to end.
    pub(crate) async fn settle(&self) {
        self.pass(Duration::from_millis(1)).await;
    }

    pub(crate) fn count(&self, matches: impl Fn(&StoreCall) -> bool) -> usize {
        let calls = self.store.calls();
        calls.iter().filter(|call| matches(call)).count()
    }
}

/// Returns whether the lock is free, by taking and freeing it.
pub(crate) async fn is_free(client: &Client, name: &str) -> bool {
    let taken = client.lock(name).try_acquire().await.expect("an answer");
    match taken {
        Some(guard) => guard.release().await.is_ok(),
        None => false,
    }
}

/// Takes a lock that is free, and frees it again.
pub(crate) async fn take(client: &Client, name: &str) {
    let guard = client.lock(name).try_acquire().await.expect("an answer");
    guard
        .expect("a free lock")
        .release()
        .await
        .expect("an answer");
}

pub(crate) fn client(store: impl Into<Arc<dyn Store>>, env: &Env) -> Client {
    Client::builder(store)
        .env(env.clone())
        .on_current_runtime()
        .build()
}

/// Opens a session of a client that does nothing else.
pub(crate) fn session(store: &MemoryStore, env: &Env) -> Arc<dyn Session> {
    let info = Arc::new(env.this_process(None));
    store.open(SessionContext::new(env.clone(), info, Handle::current()))
}

/// Asks for the lock without a client.
pub(crate) async fn attempt(
    session: &dyn Session,
    request: &LockRequest,
) -> Result<Grant, AcquireError> {
    let request = Arc::new(request.clone());
    session.acquire(&request, &Progress::new()).await
}

/// A request of a client that does nothing else.
pub(crate) fn request(fixture: &Fixture, name: &str) -> LockRequest {
    let info = fixture.env.this_process(None);
    let wall = fixture.env.clock.wall();
    let owner = Owner::at(info.id, wall, &*fixture.env.entropy);
    let key = Key::new(name).expect("a valid name");
    LockRequest::new(key, owner, TTL, wall, info.into())
}
