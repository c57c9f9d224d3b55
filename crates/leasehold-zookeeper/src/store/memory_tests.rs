use std::sync::Arc;
use std::time::Duration;

use leasehold::Key;
use leasehold::env::Env;
use leasehold::look::{ClientInfo, Owner};
use leasehold::store::{LockRequest, Progress, Session as _, SessionContext};
use leasehold_testkit::servers::Zookeeper;
use tokio::runtime::Handle;

use super::session::LockSession;
use crate::client::Servers;
use crate::url::EnsembleUrl;

/// How many names a client locks, and how many of its waiters give up.
const NAMES: usize = 2_000;
const GIVE_UPS: usize = 400;

struct Locks {
    session: LockSession,
    env: Env,
    info: Arc<ClientInfo>,
}

impl Locks {
    fn request(&self, key: &str) -> LockRequest {
        let wall = self.env.clock.wall();
        let owner = Owner::at(self.info.id, wall, &*self.env.entropy);
        let (key, info) = (Key::new(key).unwrap(), Arc::clone(&self.info));
        LockRequest::new(key, owner, Duration::from_secs(30), wall, info)
    }

    async fn take(&self, key: &str) -> Arc<LockRequest> {
        let request = Arc::new(self.request(key));
        let granted = self.session.acquire(&request, &Progress::new()).await;
        granted.unwrap();
        request
    }

    /// Waits until the lock is reported as busy, and gives up.
    async fn give_up(&self, key: &str) {
        let request = Arc::new(self.request(key).waiting(true));
        let progress = Progress::new();
        let busy = async {
            while progress.last().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            granted = self.session.acquire(&request, &progress) => panic!("{granted:?}"),
            () = busy => {}
        }
        self.session.release(&request).await.unwrap();
    }

    /// What the client remembers: owners, looks, and watches.
    async fn remembered(&self) -> [usize; 3] {
        let inner = &self.session.0;
        let connection = inner.connection().await.unwrap();
        [inner.owners(), inner.looks.len(), connection.watching()]
    }
}

#[tokio::test]
async fn zookeeper_names_and_give_ups_leave_nothing() {
    let servers = Zookeeper::start();
    let url = EnsembleUrl::parse(&servers.url()).unwrap();
    let env = Env::default();
    let info = Arc::new(env.this_process(None));
    let context = SessionContext::new(env.clone(), Arc::clone(&info), Handle::current());
    let session = LockSession::new(Arc::new(Servers::new(url).unwrap()), context);
    let locks = Locks { session, env, info };
    for number in 0..NAMES {
        let request = locks.take(&format!("name {number}")).await;
        locks.session.release(&request).await.unwrap();
    }
    assert_eq!(locks.remembered().await, [0, 0, 0]);
    let held = locks.take("held").await;
    for _ in 0..GIVE_UPS {
        locks.give_up("held").await;
    }
    assert_eq!(locks.remembered().await, [1, 0, 0]);
    locks.session.release(&held).await.unwrap();
    assert_eq!(locks.remembered().await, [0, 0, 0]);
}
