//! Leases that end early, and entries that an operator deletes.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::env::Env;
use leasehold::store::background::spawn;
use leasehold::{Client, ErrorKind, Fence, Key, LostReason};
use leasehold_etcd::EtcdStore;
use leasehold_testkit::ShiftedClock;
use leasehold_testkit::servers::{EtcdServer, until};

use crate::{LONG, client, lock, url};

fn keys(server: &EtcdServer) -> Vec<String> {
    let output = server.etcdctl(&["get", "--prefix", "--keys-only", "job/"]);
    let keys = String::from_utf8(output.stdout).unwrap();
    let lines = keys.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn next_renewal_reports_a_lease_that_ended_early() {
    let server = EtcdServer::start();
    let (client, other) = (client(&url(&server)), client(&url(&server)));
    let key = Key::new("job").unwrap();
    let guard = client.lock(&key).ttl(Duration::from_secs(6)).acquire();
    let guard = guard.await.unwrap();
    let store = EtcdStore::new(&url(&server)).unwrap();
    let entry = store.holder_key(&key, guard.fence()).await;
    let entry = entry.unwrap().unwrap();
    assert_eq!(keys(&server), std::slice::from_ref(&entry));
    // As a leader does that was stopped for too long.
    let lease = entry.strip_prefix("job/").unwrap();
    let revoked = server.etcdctl(&["lease", "revoke", lease]);
    assert!(revoked.status.success(), "{revoked:?}");
    let next = lock(&other, "job").acquire().await.unwrap();
    assert!(next.fence() > guard.fence());
    assert_eq!(guard.lost().await, LostReason::Gone);
    let late = guard.release().await.unwrap();
    assert_eq!(late, leasehold::ReleaseOutcome::WasLost);
    assert!(next.is_valid());
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_whose_entry_is_deleted_queues_again() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let held = lock(&client, "job").acquire().await.unwrap();
    let waiting = lock(&client, "job").wait(LONG);
    let waiting = spawn(async move { waiting.acquire().await });
    until("the waiter is in the queue", || keys(&server).len() == 2);
    let before = keys(&server);
    let store = EtcdStore::new(&url(&server)).unwrap();
    let holders = store.holder_key(held.key(), held.fence()).await;
    let holders = holders.unwrap().unwrap();
    let waiters = before.iter().find(|key| **key != holders).unwrap();
    // With another owner, but perhaps with the same key.
    let values = || {
        let output = server.etcdctl(&["get", "--prefix", "--print-value-only", "job/"]);
        let values = String::from_utf8(output.stdout).unwrap();
        values.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let held_and_waiting = values();
    let deleted = server.etcdctl(&["del", waiters]);
    assert!(deleted.status.success(), "{deleted:?}");
    until("the waiter is in the queue again", || {
        let values = values();
        let is_new = |value: &&String| !held_and_waiting.contains(value);
        values.len() == 2 && values.iter().filter(is_new).count() == 1
    });
    let fence = held.fence();
    held.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.fence() > fence);
    guard.release().await.unwrap();
}

/// As after two days: the lease of the fences that the waiter knew at first has ended.
#[tokio::test(flavor = "multi_thread")]
async fn waiter_outlives_the_lease_of_the_fences() {
    let server = EtcdServer::start();
    let (holder, other) = (client(&url(&server)), client(&url(&server)));
    let held = lock(&holder, "job").acquire().await.unwrap();
    // Far less than the TTL, after which the waiter would begin anew.
    let waiting = lock(&other, "job").wait(LONG / 3);
    let waiting = spawn(async move { waiting.acquire().await });
    until("the waiter is in the queue", || keys(&server).len() == 2);
    let fence = server.etcdctl(&["get", "leasehold:fence/job", "--write-out=fields"]);
    let fence = String::from_utf8(fence.stdout).unwrap();
    let lease = fence
        .lines()
        .find_map(|line| line.strip_prefix("\"Lease\" : "));
    let lease: i64 = lease.unwrap().parse().unwrap();
    let revoked = server.etcdctl(&["lease", "revoke", &format!("{lease:x}")]);
    assert!(revoked.status.success(), "{revoked:?}");
    let fence = held.fence();
    held.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.fence() > fence);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn fence_that_no_other_follows_is_an_error() {
    let server = EtcdServer::start();
    for last in [Fence::MAX.get(), u64::MAX] {
        let put = server.etcdctl(&["put", "leasehold:fence/job", &format!("{last:020}")]);
        assert!(put.status.success(), "{put:?}");
        let lock = lock(&client(&url(&server)), "job");
        let error = lock.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[tokio::test]
async fn clock_in_another_unit_writes_nothing() {
    let server = EtcdServer::start();
    // It takes milliseconds for seconds.
    let now = SystemClock.wall().as_micros().cast_signed();
    let env = Env {
        clock: Arc::new(ShiftedClock::ahead(now * 999)),
        ..Env::default()
    };
    let store = EtcdStore::new(&url(&server)).unwrap();
    let wrong = Client::builder(store).env(env).build();
    let error = lock(&wrong, "job").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let written = server.etcdctl(&["get", "", "--prefix", "--keys-only"]);
    assert!(written.stdout.is_empty(), "{written:?}");
    let right = client(&url(&server));
    let guard = lock(&right, "job").acquire().await.unwrap();
    guard.release().await.unwrap();
}
