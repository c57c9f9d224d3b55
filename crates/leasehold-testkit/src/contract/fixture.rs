use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use leasehold::clock::WallTime;
use leasehold::env::Env;
use leasehold::store::{
    Admin, Attempt, Claim, ClientInfo, Expiry, Held, Inspection, Owner, Release, Store,
};
use leasehold::{Fence, Guarantees, Key, Mode};

use super::worker::Worker;
use crate::harness::{Harness, Suite};

/// What one test works with: keys of its own, and clients that ask for them.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) suite: Suite,
    pub(crate) harness: Arc<dyn Harness>,
    name: &'static str,
    env: Env,
    keys: AtomicU32,
}

/// Long enough for a slow and busy machine. A test that waits longer has failed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A TTL that ends only after [`TIMEOUT`]. A lock that is free earlier was freed, and did not expire.
pub(crate) const LONG: Duration = Duration::from_secs(60);

impl Fixture {
    pub(crate) fn new(suite: Suite, name: &'static str, harness: Arc<dyn Harness>) -> Self {
        Self {
            suite,
            harness,
            name,
            env: Env::default(),
            keys: AtomicU32::new(0),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn open(&self) -> Arc<dyn Store> {
        self.harness.open()
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

    /// Returns a claim of a client of its own.
    pub(crate) fn claim(&self, key: &Key, ttl: Duration) -> Claim {
        self.claim_of(&self.client(), key, ttl)
    }

    /// Returns a new client.
    pub(crate) fn client(&self) -> Arc<ClientInfo> {
        let info = ClientInfo::of_this_process(&self.env, Some("contract".into()));
        Arc::new(info)
    }

    pub(crate) fn claim_of(&self, client: &Arc<ClientInfo>, key: &Key, ttl: Duration) -> Claim {
        let wall = self.wall();
        let owner = Owner::at(client.id, wall, &*self.env.entropy);
        Claim::new(key.clone(), owner, ttl, wall, Arc::clone(client))
    }

    /// Waits a little, between two looks at a condition.
    pub(crate) async fn pause(&self) {
        self.env.poll_pause().await;
    }

    pub(crate) fn shared(&self, key: &Key, ttl: Duration) -> Claim {
        self.claim(key, ttl).with_mode(Mode::Shared)
    }

    /// Starts another process that holds `key`. Also returns its fence.
    pub(crate) fn worker(&self, key: &Key, ttl: Duration) -> (Worker, u64) {
        Worker::holding(self.suite.name, &self.harness.address(), key.as_str(), ttl)
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

/// Returns the fence of a claim, which must be granted.
pub(crate) async fn granted(store: &Arc<dyn Store>, claim: &Claim) -> Fence {
    match store.acquire(claim).await {
        Ok(Attempt::Granted(grant)) => grant.fence,
        other => panic!("{} should be granted: {other:?}", claim.key),
    }
}

/// Checks that the answer to a claim is busy.
pub(crate) async fn busy(store: &Arc<dyn Store>, claim: &Claim) {
    match store.acquire(claim).await {
        Ok(Attempt::Busy(_)) => {}
        other => panic!("{} should be busy: {other:?}", claim.key),
    }
}

pub(crate) async fn released(store: &Arc<dyn Store>, claim: &Claim) {
    let outcome = store.release(claim).await;
    assert!(
        matches!(outcome, Ok(Release::Released)),
        "{} should be freed: {outcome:?}",
        claim.key
    );
}

/// Asks with fresh claims until one is granted. Also returns how long that took.
pub(crate) async fn granted_in_time(
    fixture: &Fixture,
    store: &Arc<dyn Store>,
    key: &Key,
) -> (Claim, Duration) {
    let began = now();
    loop {
        let claim = fixture.claim(key, LONG);
        let answer = store.acquire(&claim).await;
        if matches!(answer, Ok(Attempt::Granted(_))) {
            return (claim, began.elapsed());
        }
        assert!(
            began.elapsed() < TIMEOUT,
            "{key} is still not free: {answer:?}"
        );
        store.wait(&claim).await;
    }
}

pub(crate) fn held(claim: &Claim, fence: Fence) -> Held {
    Held {
        claim: Arc::new(claim.clone()),
        fence,
    }
}

/// Returns the store's [`Inspection`]; only for tests that need it.
pub(crate) fn inspection<S: Store + ?Sized>(store: &Arc<S>) -> &dyn Inspection {
    store.inspection().expect("a store with inspection")
}

/// Returns the store's [`Admin`]; only for tests that need it.
pub(crate) fn admin<S: Store + ?Sized>(store: &Arc<S>) -> &dyn Admin {
    store.admin().expect("a store with admin")
}

/// Checks that the lock is free, by taking it.
pub(crate) async fn free(fixture: &Fixture, store: &Arc<dyn Store>, key: &Key) {
    let claim = fixture.claim(key, LONG);
    granted(store, &claim).await;
    released(store, &claim).await;
}

pub(crate) fn expires(guarantees: Guarantees) -> bool {
    guarantees.expiry == Expiry::Lease
}

/// Returns a TTL for leases that must end during the test. It is short, but long enough that a slow machine
/// does not lose them between two lines.
pub(crate) fn short_ttl(store: &Arc<dyn Store>) -> Duration {
    store.terms().ttl_min.max(Duration::from_millis(1500))
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests measure how long they waited"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
