//! Locks whose names begin with the name of another lock and a slash: their keys lie among those of that lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use leasehold::store::background::spawn;
use leasehold::{Client, Mode};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::EtcdServer;
use tokio::task::JoinHandle;

use crate::{LONG, client, lock, url};

/// Takes and releases locks below `a` until it is told to stop. Their keys lie in every part of the range of `a`.
struct Traffic {
    ends: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Traffic {
    fn below_a(client: &Client) -> Self {
        let ends = Arc::<AtomicBool>::default();
        let names = ["a/s0", "a/s1", "a/s2", "a/10", "a/b", "a/r1"];
        let tasks = names.map(|name| {
            let (lock, ends) = (lock(client, name), Arc::clone(&ends));
            spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        });
        Self {
            ends,
            tasks: tasks.into(),
        }
    }

    async fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for ended in join_all(self.tasks).await {
            ended.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn free_lock_is_granted_beside_busy_ones() {
    let server = EtcdServer::start();
    let traffic = Traffic::below_a(&client(&url(&server)));
    let network = Proxy::to(server.port());
    network.set(NetworkFault::SlowAnswers(Duration::from_millis(20)));
    let far = client(&format!("etcd://127.0.0.1:{}", network.port()));
    for mode in [Mode::Exclusive, Mode::Shared] {
        let lock = lock(&far, "a").mode(mode);
        let tried = lock.clone().try_acquire().await.unwrap();
        let guard = tried.expect("the lock is free");
        // It waits for the first one.
        let barging = crate::lock(&far, "a").barging(true).wait(LONG);
        let barging = spawn(async move { barging.acquire().await });
        guard.release().await.unwrap();
        barging.await.unwrap().unwrap().release().await.unwrap();
        let guard = lock.wait(LONG).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    traffic.end().await;
}

/// While locks below it are held, the lock is as good as any other.
#[tokio::test]
async fn lock_with_many_neighbours_excludes_and_is_free() {
    const NEIGHBOURS: usize = 300;
    let server = EtcdServer::start();
    let (ours, theirs) = (client(&url(&server)), client(&url(&server)));
    let names = (0..NEIGHBOURS).map(|number| lock(&ours, &format!("tree/{number}")).acquire());
    let neighbours = try_join_all(names).await.unwrap();
    for _ in 0..3 {
        let guard = lock(&ours, "tree").try_acquire().await.unwrap().unwrap();
        assert!(lock(&theirs, "tree").try_acquire().await.unwrap().is_none());
        let waiting = spawn(lock(&theirs, "tree").acquire());
        while ours.waiters("tree").await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let fence = guard.fence();
        guard.release().await.unwrap();
        let next = waiting.await.unwrap().unwrap();
        assert!(next.fence() > fence);
        next.release().await.unwrap();
    }
    let released = neighbours.into_iter().map(leasehold::Guard::release);
    try_join_all(released).await.unwrap();
}
