//! Permits over several servers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{Client, Effect, Semaphore};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};

use crate::support::{eventually, quorum};

const PERMITS: u64 = 3;
const MEMBERS: usize = 5;
const CLIENTS: usize = 4;
const CONTENDERS: usize = 6;
const CYCLES: usize = 8;

/// The limit for all of them together. A run that forgets no waiter takes a small part of it.
const TIMEOUT: Duration = Duration::from_secs(90);

/// What the permit holders observe of one another.
#[derive(Default)]
struct Section {
    inside: AtomicU64,
    most: AtomicU64,
    last_fence: AtomicU64,
    served: AtomicUsize,
}

impl Section {
    /// Takes and releases a permit again and again. A permit that is taken later has a greater fence.
    async fn contend(&self, semaphore: Semaphore) -> Vec<u64> {
        let mut fences = Vec::new();
        for _ in 0..CYCLES {
            let earlier = self.last_fence.load(Ordering::SeqCst);
            let guard = semaphore.acquire().await.unwrap();
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(inside, Ordering::SeqCst);
            let fence = guard.fence().get();
            assert!(fence > earlier, "{fence} after {earlier}");
            self.last_fence.fetch_max(fence, Ordering::SeqCst);
            fences.push(fence);
            let work = SystemClock.now() + Duration::from_millis(3);
            SystemClock.sleep_until(work).await;
            assert!(guard.is_valid(), "{:?}", guard.state());
            self.inside.fetch_sub(1, Ordering::SeqCst);
            self.served.fetch_add(1, Ordering::SeqCst);
            if let Err(error) = guard.release().await {
                // A killed member cannot say whether it granted this permit.
                assert_eq!(error.effect(), Effect::Unknown, "{error}");
            }
        }
        fences
    }

    async fn has_served(&self, count: usize) {
        eventually("they are served", async || {
            (self.served.load(Ordering::SeqCst) >= count).then_some(())
        })
        .await;
    }
}

fn names_nobody(server: &RedisServer) -> bool {
    let records = ["readers", "slots", "queue"];
    let records = records.map(|record| format!("leasehold:{record}:{{workers}}:workers"));
    let mut command = vec!["EXISTS", "workers"];
    command.extend(records.iter().map(String::as_str));
    server.command(&command) == Reply::Integer(0)
}

#[tokio::test]
async fn permits_are_kept_while_two_servers_die() {
    let mut set = RedisSet::start(MEMBERS);
    quorum(&set).init().await.unwrap();
    let clients: Vec<Client> = (0..CLIENTS).map(|_| Client::new(quorum(&set))).collect();
    let section = Section::default();
    let contenders = clients.iter().cycle().take(CLIENTS * CONTENDERS);
    let contenders = contenders.map(|client| client.semaphore("workers", PERMITS as u32));
    let contend = join_all(contenders.map(|semaphore| section.contend(semaphore)));
    let all = CLIENTS * CONTENDERS * CYCLES;
    let kill = async {
        for (number, server) in set.iter_mut().take(2).enumerate() {
            section.has_served((number + 1) * all / 4).await;
            server.kill();
        }
    };
    let end = SystemClock.now() + TIMEOUT;
    let both = futures_util::future::join(contend, kill);
    let served = within(&SystemClock, end, both).await;
    let (fences, ()) = served.unwrap_or_else(|| {
        let served = section.served.load(Ordering::SeqCst);
        panic!("{served} of {all} were served within {TIMEOUT:?}")
    });
    let most = section.most.load(Ordering::SeqCst);
    assert!((2..=PERMITS).contains(&most), "{most} at once");
    let mut fences = fences.concat();
    assert_eq!(fences.len(), all);
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), all, "a fence for each permit that was taken");
    for server in set.iter().skip(2) {
        eventually("nothing is left", async || {
            names_nobody(server).then_some(())
        })
        .await;
    }
}
