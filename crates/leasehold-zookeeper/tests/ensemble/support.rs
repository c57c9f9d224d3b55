use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::env::Env;
use leasehold::look::{ClientInfo, Owner};
use leasehold::store::{AcquireError, Held, LockRequest, Progress, Session, SessionContext, Store};
use leasehold::{Client, Key, Lock};
use leasehold_zookeeper::ZooKeeperStore;
use tokio::runtime::Handle;

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Returns a client of the servers at this URL.
pub(crate) fn client(url: &str) -> Client {
    Client::new(store(url))
}

pub(crate) fn store(url: &str) -> Arc<dyn Store> {
    ZooKeeperStore::new(url).unwrap().into()
}

/// Returns a lock that waits for long.
pub(crate) fn lock(client: &Client, key: &str) -> Lock {
    client.lock(key).ttl(LONG).wait(LONG)
}

/// Acquires the lock and releases it.
pub(crate) async fn hold_once(client: &Client, key: &str) {
    let guard = lock(client, key).acquire().await.unwrap();
    guard.release().await.unwrap();
}

pub(crate) fn now() -> BootInstant {
    SystemClock.now()
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let end = now() + LONG;
    while !condition().await {
        assert!(now() < end, "{what}: not within {LONG:?}");
        pause(10).await;
    }
}

/// The pause between two looks at a condition.
pub(crate) async fn pause(millis: u64) {
    SystemClock
        .sleep_until(now() + Duration::from_millis(millis))
        .await;
}

/// Waits until this many wait for the lock.
pub(crate) async fn until_waiting(client: &Client, key: &str, count: usize) {
    let what = format!("{count} wait for {key}");
    until(&what, async || {
        client.waiters(key).await.unwrap().len() == count
    })
    .await;
}

/// A session without a client of locks.
pub(crate) struct Direct {
    pub(crate) session: Arc<dyn Session>,
    info: Arc<ClientInfo>,
    env: Env,
}

impl Direct {
    pub(crate) fn open(url: &str) -> Self {
        let env = Env::default();
        let info = Arc::new(env.this_process(None));
        let context = SessionContext::new(env.clone(), Arc::clone(&info), Handle::current());
        let session = store(url).open(context);
        Self { session, info, env }
    }

    /// Returns a request for the lock.
    pub(crate) fn request(&self, key: &str, ttl: Duration) -> LockRequest {
        let wall = self.env.clock.wall();
        let owner = Owner::at(self.info.id, wall, &*self.env.entropy);
        let (key, info) = (Key::new(key).unwrap(), Arc::clone(&self.info));
        LockRequest::new(key, owner, ttl, wall, info)
    }

    /// Makes one attempt.
    pub(crate) async fn ask(&self, request: LockRequest) -> Result<Held, AcquireError> {
        let request = Arc::new(request);
        let grant = self.session.acquire(&request, &Progress::new()).await?;
        let fence = grant.fence;
        Ok(Held { request, fence })
    }

    /// Takes the lock. A follower that has just come back may still close new connections.
    pub(crate) async fn acquire(&self, key: &str, ttl: Duration) -> Held {
        let end = now() + leasehold_testkit::servers::LIMIT;
        loop {
            let request = self.request(key, ttl);
            match self.ask(request.clone()).await {
                Ok(held) => return held,
                Err(AcquireError::Failed(error)) if error.is_unreachable() && now() < end => {
                    drop(self.session.release(&Arc::new(request)).await);
                    pause(50).await;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
