//! Requests of concurrent callers go to the server as one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use leasehold::store::background::spawn;
use leasehold::{Client, ErrorKind, Guard};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{EtcdServer, until};

use crate::{LONG, client, lock, url};

/// How many callers ask at the same time.
const CALLERS: usize = 50;

fn names() -> Vec<String> {
    let numbers = 0..CALLERS;
    numbers.map(|number| format!("locks/{number}")).collect()
}

async fn take_all(client: &Client) -> Vec<Guard> {
    let names = names();
    let locks = names.iter().map(|name| lock(client, name).acquire());
    try_join_all(locks).await.unwrap()
}

async fn release_all(guards: Vec<Guard>) {
    let released = guards.into_iter().map(Guard::release);
    try_join_all(released).await.unwrap();
}

/// Returns a client far from the server, with an idle lease for each caller.
async fn with_idle_leases(network: &Proxy, login: &str) -> Client {
    let client = client(&format!("etcd://{login}127.0.0.1:{}", network.port()));
    let first = lock(&client, "locks/warm").acquire().await.unwrap();
    first.release().await.unwrap();
    release_all(take_all(&client).await).await;
    network.set(NetworkFault::SlowAnswers(Duration::from_millis(20)));
    client
}

#[tokio::test]
async fn concurrent_callers_share_transactions() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = with_idle_leases(&network, "").await;
    let calls = || server.calls("Txn") + server.calls("DeleteRange") + server.calls("LeaseGrant");
    let before = calls();
    let guards = take_all(&client).await;
    let mut fences: Vec<_> = guards.iter().map(Guard::fence).collect();
    fences.dedup();
    assert_eq!(fences.len(), CALLERS);
    release_all(guards).await;
    let asked = calls() - before;
    assert!(asked < 20, "{asked} requests");
}

#[tokio::test]
async fn ended_lease_fails_no_other_request_of_a_batch() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = with_idle_leases(&network, "").await;
    let output = server.etcdctl(&["lease", "list"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    for lease in shown.lines().skip(1).step_by(7) {
        server.etcdctl(&["lease", "revoke", lease]);
    }
    release_all(take_all(&client).await).await;
}

#[tokio::test]
async fn denied_key_is_refused_among_others() {
    let server = EtcdServer::start();
    server.demand_login("ann", "secret", "locks/");
    // The keys of fences.
    let words = ["--user=root:root", "role", "grant-permission", "ann"];
    let right = ["readwrite", "--prefix=true", "leasehold:"];
    let granted = server.etcdctl(&[&words[..], &right[..]].concat());
    assert!(granted.status.success(), "{granted:?}");
    let network = Proxy::to(server.port());
    let client = with_idle_leases(&network, "ann:secret@").await;
    let mut names = names();
    names[CALLERS / 2] = "other".into();
    let locks = names.iter().map(|name| lock(&client, name).acquire());
    let (mut guards, mut errors) = (Vec::new(), Vec::new());
    for answer in join_all(locks).await {
        match answer {
            Ok(guard) => guards.push(guard),
            Err(error) => errors.push(error.kind()),
        }
    }
    assert_eq!(errors, [ErrorKind::Refused]);
    release_all(guards).await;
}

#[tokio::test]
async fn callers_of_one_lock_exclude_each_other() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = with_idle_leases(&network, "").await;
    let locks: Vec<_> = (0..CALLERS / 2)
        .flat_map(|number| {
            [
                lock(&client, "locks/one"),
                lock(&client, &format!("locks/{number}")),
            ]
        })
        .collect();
    let tried = join_all(locks.iter().map(|lock| lock.clone().try_acquire())).await;
    let guards: Vec<Guard> = tried.into_iter().filter_map(Result::unwrap).collect();
    let of_one = guards
        .iter()
        .filter(|guard| guard.key().as_str() == "locks/one");
    assert_eq!((of_one.count(), guards.len()), (1, CALLERS / 2 + 1));
    release_all(guards).await;
}

/// Batches of releases and attempts at locks that are free, held, and passed on.
#[tokio::test(flavor = "multi_thread")]
async fn locks_exclude_while_requests_gather() {
    const LOCKS: usize = 10;
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let last: Arc<[AtomicU64; LOCKS]> = Arc::default();
    let tasks = (0..CALLERS).map(|task| {
        let (client, last) = (client.clone(), Arc::clone(&last));
        spawn(async move {
            for cycle in 0..30 {
                let number = (task + cycle * 7) % LOCKS;
                let lock = lock(&client, &format!("locks/{number}")).wait(LONG);
                let guard = lock.acquire().await.unwrap();
                // The fence while the lock is held, and 0 for a free lock.
                assert_eq!(last[number].swap(guard.fence().get(), Relaxed), 0);
                tokio::task::yield_now().await;
                assert_eq!(last[number].swap(0, Relaxed), guard.fence().get());
                guard.release().await.unwrap();
            }
        })
    });
    try_join_all(tasks).await.unwrap();
}

/// A caller that ends while its request gathers leaves no entry behind.
#[tokio::test]
async fn dropped_callers_leave_nothing() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = with_idle_leases(&network, "").await;
    let names = names();
    let trying = names.iter().map(|name| lock(&client, name).acquire());
    let trying: Vec<_> = trying.map(spawn).collect();
    until("most of them gather", || network.requests() > 0);
    tokio::task::yield_now().await;
    trying.iter().for_each(tokio::task::JoinHandle::abort);
    client.close(LONG).await.unwrap();
    let other = crate::client(&url(&server));
    release_all(take_all(&other).await).await;
}
