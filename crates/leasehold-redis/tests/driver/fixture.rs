use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold::Key;
use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime};
use leasehold::env::{Env, SystemEntropy};
use leasehold::look::{ClientInfo, Owner};
use leasehold::store::background::{self, ThreadRuntime};
use leasehold::store::{BoxFuture, LockRequest, SessionContext};
use leasehold_quorum::{Acquired, Operation, Outcome, ReleaseMode};
use leasehold_redis::driver::{Call, Driver, DriverConfig, parse_all};
use leasehold_testkit::servers::{RedisSet, Reply};

/// A client of some servers.
pub(crate) struct Client {
    pub(crate) driver: Driver,
    info: Arc<ClientInfo>,
}

pub(crate) const TTL: Duration = Duration::from_secs(60);

impl Client {
    pub(crate) fn of(set: &RedisSet) -> Self {
        Self::at(set.urls())
    }

    pub(crate) fn at(urls: Vec<String>) -> Self {
        Self::with(urls, Env::default())
    }

    /// A client whose timers never end.
    pub(crate) fn without_timers(set: &RedisSet) -> Self {
        let env = Env {
            clock: Arc::new(NoTimers),
            ..Env::default()
        };
        Self::with(set.urls(), env)
    }

    fn with(urls: Vec<String>, env: Env) -> Self {
        let info = Arc::new(env.this_process(None));
        let config = DriverConfig {
            gauges: None,
            urls: parse_all(&urls).expect("URLs"),
            max_ttl: TTL,
            clock_tolerance: Duration::from_secs(1),
            enforced: false,
            read_only: false,
        };
        let runtime = ThreadRuntime::new().expect("a runtime");
        let context = SessionContext::new(env, Arc::clone(&info), runtime.handle().clone());
        let driver = Driver::open(config, &context);
        // The driver has work to finish after it was dropped.
        background::thread("client", move || runtime.block_on(pending())).expect("a thread");
        Self { driver, info }
    }

    /// A request that waits in the queue.
    pub(crate) fn lock_request(&self, key: &str) -> Arc<LockRequest> {
        let now = SystemClock.wall();
        let owner = Owner::at(self.info.id, now, &SystemEntropy);
        let key = Key::new(key).expect("a key");
        let lock_request = LockRequest::new(key, owner, TTL, now, Arc::clone(&self.info));
        Arc::new(lock_request.waiting(true))
    }

    pub(crate) fn begin_acquire(&self, lock_request: Arc<LockRequest>) -> Call {
        self.driver.start(Operation::Acquire(lock_request))
    }

    pub(crate) fn begin_release(&self, lock_request: Arc<LockRequest>) -> Call {
        let release = Operation::Release(lock_request, ReleaseMode::HandOver);
        self.driver.start(release)
    }

    pub(crate) async fn acquire(&self, key: &str) -> (Arc<LockRequest>, Acquired) {
        let lock_request = self.lock_request(key);
        match self.begin_acquire(Arc::clone(&lock_request)).await {
            Outcome::Acquired(acquired) => (granted(&lock_request, &acquired), acquired),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn release(&self, lock_request: Arc<LockRequest>) {
        let released = self.begin_release(lock_request).await;
        assert!(matches!(released, Outcome::Released(_)), "{released:?}");
    }
}

/// Returns the request with the owner of its lease.
pub(crate) fn granted(lock_request: &LockRequest, acquired: &Acquired) -> Arc<LockRequest> {
    Arc::new(lock_request.clone().with_owner(acquired.owner))
}

/// The locks and queues that the servers have now.
pub(crate) fn locks(set: &RedisSet) -> Vec<Reply> {
    let mut found = Vec::new();
    for server in set.iter() {
        for pattern in ["lock*", "leasehold:queue:*"] {
            if let Reply::Array(keys) = server.command(&["KEYS", pattern]) {
                found.extend(keys);
            }
        }
    }
    found
}

/// Random numbers of a test that only need to vary.
pub(crate) fn draw(below: u64) -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(1);
    let state = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 33) % below
}

/// The clock of the machine, without its timers.
#[derive(Debug)]
struct NoTimers;

impl Clock for NoTimers {
    fn now(&self) -> BootInstant {
        SystemClock.now()
    }

    fn wall(&self) -> WallTime {
        SystemClock.wall()
    }

    fn sleep_until(&self, _: BootInstant) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }

    fn was_paused(&self, _: Duration) {}
}
