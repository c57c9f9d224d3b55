//! A lease that holds one lock after the other: nothing that was meant for one of them changes another one.

use std::time::Duration;

use futures_util::future::{join, try_join_all};
use leasehold::look::BreakOptions;
use leasehold::store::background::spawn;
use leasehold::{Client, Guard, LostReason, ReleaseOutcome};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{EtcdServer, until};
use tokio::runtime::Builder;

use crate::{LONG, client, lock, url};

/// How long each request of a slow client is on its way: short enough for a whole break between two checks of a connection.
const SLOW: Duration = Duration::from_millis(350);

fn through(proxy: &Proxy) -> Client {
    client(&format!("etcd://127.0.0.1:{}", proxy.port()))
}

/// Returns a client with one lease in its pool.
async fn with_idle_lease(url: &str) -> Client {
    let client = client(url);
    // The first lock of a client leaves no lease behind.
    for _ in 0..2 {
        take(&client, "warm").await.release().await.unwrap();
    }
    client
}

async fn take(client: &Client, name: &str) -> Guard {
    lock(client, name).acquire().await.unwrap()
}

async fn is_free(client: &Client, name: &str) -> bool {
    let tried = lock(client, name).try_acquire().await.unwrap();
    match tried {
        Some(guard) => guard.release().await.is_ok(),
        None => false,
    }
}

fn etcdctl(server: &EtcdServer, words: &[&str]) -> String {
    let output = server.etcdctl(words);
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the lease of the only entry of a lock, in hexadecimal digits; `None` if it has no entry.
fn lease_of(server: &EtcdServer, name: &str) -> Option<String> {
    let shown = etcdctl(
        server,
        &["get", "--prefix", &format!("{name}/"), "--write-out=fields"],
    );
    let leases = shown
        .lines()
        .filter_map(|line| line.strip_prefix("\"Lease\" : "));
    let leases: Vec<i64> = leases.map(|lease| lease.parse().unwrap()).collect();
    assert!(leases.len() <= 1, "{shown}");
    leases.first().map(|lease| format!("{lease:x}"))
}

fn key_of(server: &EtcdServer, name: &str) -> String {
    etcdctl(
        server,
        &["get", "--prefix", &format!("{name}/"), "--keys-only"],
    )
}

/// Returns the leases at the server, in hexadecimal digits.
fn leases(server: &EtcdServer) -> Vec<String> {
    let shown = etcdctl(server, &["lease", "list"]);
    shown.lines().skip(1).map(str::to_owned).collect()
}

fn has_ended(server: &EtcdServer, lease: &str) -> bool {
    !leases(server)
        .iter()
        .any(|other| other.trim_start_matches('0') == lease)
}

/// The lock is held, by an entry that its client can renew.
async fn lives(guard: &Guard) {
    guard.renew().await.unwrap();
}

#[tokio::test]
async fn free_locks_share_a_lease() {
    let server = EtcdServer::start();
    let client = with_idle_lease(&url(&server)).await;
    let before = (server.calls("LeaseGrant"), server.calls("LeaseRevoke"));
    let mut used = Vec::new();
    for name in ["one", "two", "one", "one/below"] {
        let guard = take(&client, name).await;
        used.push(lease_of(&server, name));
        guard.release().await.unwrap();
    }
    used.dedup();
    assert_eq!(used.len(), 1);
    assert_eq!(
        (server.calls("LeaseGrant"), server.calls("LeaseRevoke")),
        before
    );
    let lease = used.pop().flatten().unwrap();
    client.close(LONG).await.unwrap();
    assert!(has_ended(&server, &lease));
}

#[tokio::test]
async fn first_lock_of_a_client_leaves_no_lease() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let guard = take(&client, "job").await;
    let lease = lease_of(&server, "job").unwrap();
    guard.release().await.unwrap();
    assert!(has_ended(&server, &lease));
}

#[tokio::test]
async fn busy_attempts_use_one_lease() {
    let server = EtcdServer::start();
    let (holder, client) = (client(&url(&server)), with_idle_lease(&url(&server)).await);
    let held = take(&holder, "job").await;
    let before = server.calls("LeaseGrant");
    for _ in 0..10 {
        assert!(lock(&client, "job").try_acquire().await.unwrap().is_none());
    }
    assert_eq!(server.calls("LeaseGrant"), before);
    held.release().await.unwrap();
    take(&client, "job").await.release().await.unwrap();
}

#[tokio::test]
async fn pool_keeps_at_most_64_leases() {
    let server = EtcdServer::start();
    let client = with_idle_lease(&url(&server)).await;
    let locks = (0..100).map(|number| lock(&client, &format!("job-{number}")).acquire());
    let guards = try_join_all(locks).await.unwrap();
    // One more has the fences.
    assert!(leases(&server).len() > 100);
    try_join_all(guards.into_iter().map(Guard::release))
        .await
        .unwrap();
    until("all others are revoked", || leases(&server).len() <= 65);
    client.close(LONG).await.unwrap();
    assert_eq!(leases(&server).len(), 1);
}

/// As after a client was frozen for longer than its TTL, or after a leader was.
#[tokio::test]
async fn lease_that_ended_in_the_pool_is_replaced() {
    let server = EtcdServer::start();
    let client = with_idle_lease(&url(&server)).await;
    for lease in leases(&server) {
        etcdctl(&server, &["lease", "revoke", &lease]);
    }
    let before = server.calls("LeaseGrant");
    let guard = lock(&client, "job").try_acquire().await.unwrap().unwrap();
    // That of the fences ended, too.
    assert!(server.calls("LeaseGrant") <= before + 2);
    lives(&guard).await;
    guard.release().await.unwrap();
}

/// The attempt is dropped while its transaction is on its way, and the lease that it names lives until its release.
#[tokio::test(flavor = "multi_thread")]
async fn late_acquire_of_a_released_owner_has_no_effect() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = with_idle_lease(&format!("etcd://127.0.0.1:{}", network.port())).await;
    let guard = take(&client, "job").await;
    let lease = lease_of(&server, "job").unwrap();
    guard.release().await.unwrap();
    let sent = network.requests();
    network.hold_requests();
    let trying = spawn(lock(&client, "job").acquire());
    until("the transaction is on its way", || {
        network.requests() > sent
    });
    trying.abort();
    until("the lease is revoked", || has_ended(&server, &lease));
    network.close_held();
    network.deliver_requests();
    until("the transaction has arrived", || !network.holds_requests());
    assert_eq!(lease_of(&server, "job"), None);
    assert!(is_free(&client, "job").await);
}

/// The client releases the lock on another connection, and takes it again, before its first request arrives.
#[tokio::test(flavor = "multi_thread")]
async fn late_release_does_not_free_the_next_holder() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = with_idle_lease(&format!("etcd://127.0.0.1:{}", network.port())).await;
    let guard = take(&client, "job").await;
    let (fence, key) = (guard.fence(), key_of(&server, "job"));
    network.hold_requests();
    let outcome = guard.release().await.unwrap();
    assert_eq!(outcome, ReleaseOutcome::Released);
    // The next attempt uses another connection.
    network.close_held();
    take(&client, "other").await.release().await.unwrap();
    let next = take(&client, "job").await;
    assert!(next.fence() > fence);
    assert_ne!(key_of(&server, "job"), key);
    network.deliver_requests();
    until("the request has arrived", || !network.holds_requests());
    lives(&next).await;
    let other = crate::client(&url(&server));
    assert!(!is_free(&other, "job").await);
    next.release().await.unwrap();
    assert!(is_free(&other, "job").await);
}

/// The requests of the operator arrive late, and the holder releases the lock after as many of them.
async fn release_during_a_break(how: fn() -> BreakOptions, after: fn(&EtcdServer, u64) -> bool) {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let operator = through(&network);
    let client = with_idle_lease(&url(&server)).await;
    let guard = take(&client, "job").await;
    let (fence, lease) = (guard.fence(), lease_of(&server, "job").unwrap());
    assert_eq!(operator.holders("job").await.unwrap().len(), 1);
    network.set(NetworkFault::SlowRequests(SLOW));
    let ranges = server.calls("Range");
    let breaking = spawn(async move { operator.break_lock("job", fence, how()).await });
    until("it is time to release", || after(&server, ranges));
    guard.release().await.unwrap();
    let next = take(&client, "next").await;
    let is_same_lease = lease_of(&server, "next").unwrap() == lease;
    let again = take(&client, "job").await;
    breaking.await.unwrap().unwrap();
    lives(&next).await;
    lives(&again).await;
    if !is_same_lease {
        assert!(
            has_ended(&server, &lease),
            "no key is left, and nothing renews it"
        );
    }
    next.release().await.unwrap();
    again.release().await.unwrap();
}

/// The break sees the entry before the release deletes it.
#[tokio::test(flavor = "multi_thread")]
async fn break_after_a_release_spares_the_next_lock() {
    // It first shows the holder, and then reads the entry that it breaks.
    let is_read = |server: &EtcdServer, before: u64| server.calls("Range") >= before + 2;
    for how in [BreakOptions::at_once, BreakOptions::at_its_end] {
        release_during_a_break(how, is_read).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn break_before_a_release_spares_the_next_lock() {
    let is_deleted = |server: &EtcdServer, _| lease_of(server, "job").is_none();
    release_during_a_break(BreakOptions::at_once, is_deleted).await;
    let is_marked = |server: &EtcdServer, _| {
        let shown = etcdctl(server, &["get", "--prefix", "job/", "--print-value-only"]);
        shown.contains("\"broken\"")
    };
    release_during_a_break(BreakOptions::at_its_end, is_marked).await;
    let is_closed = |server: &EtcdServer, _| {
        let shown = etcdctl(server, &["get", "--prefix", "job/", "--print-value-only"]);
        shown.contains("\"is_closed\"")
    };
    release_during_a_break(BreakOptions::at_its_end, is_closed).await;
}

/// Cuts a break off once the entry has this field.
async fn cut_a_break(field: &str) {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let operator = through(&network);
    let client = with_idle_lease(&url(&server)).await;
    let guard = take(&client, "job").await;
    let (fence, lease) = (guard.fence(), lease_of(&server, "job").unwrap());
    network.set(NetworkFault::SlowRequests(SLOW));
    let breaking = spawn(async move {
        let how = BreakOptions::at_its_end();
        operator.break_lock("job", fence, how).await
    });
    let value = || etcdctl(&server, &["get", "--prefix", "job/", "--print-value-only"]);
    until("the entry has the field", || value().contains(field));
    network.set(NetworkFault::Refusing);
    // On a busy machine, it may have got further than that.
    let _ = breaking.await.unwrap();
    assert_eq!(guard.lost().await, LostReason::Broken);
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    let next = take(&client, "job").await;
    assert_ne!(lease_of(&server, "job").unwrap(), lease);
    lives(&next).await;
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_a_marked_entry_is_not_used_again() {
    cut_a_break("\"broken\"").await;
}

/// The lease runs out: the client no longer knows it, and the break does not get to its revocation.
#[tokio::test(flavor = "multi_thread")]
async fn lease_of_a_closed_entry_is_not_used_again() {
    cut_a_break("\"is_closed\"").await;
}

#[tokio::test]
async fn another_process_adopts_a_lock_of_the_pool() {
    let server = EtcdServer::start();
    let (ours, theirs) = (with_idle_lease(&url(&server)).await, client(&url(&server)));
    let guard = take(&ours, "job").await;
    let lease = lease_of(&server, "job").unwrap();
    let handle = guard.into_handle().unwrap();
    let adopted = theirs.adopt(&handle).await.unwrap();
    lives(&adopted).await;
    assert_eq!(adopted.release().await.unwrap(), ReleaseOutcome::Released);
    assert!(has_ended(&server, &lease));
    let next = take(&ours, "job").await;
    assert_ne!(lease_of(&server, "job").unwrap(), lease);
    next.release().await.unwrap();
}

/// Another process has a handle of a lock, whose lease holds another lock now.
#[tokio::test]
async fn stale_handle_spares_the_next_lock() {
    let server = EtcdServer::start();
    let (ours, theirs) = (with_idle_lease(&url(&server)).await, client(&url(&server)));
    let guard = take(&ours, "job").await;
    let lease = lease_of(&server, "job").unwrap();
    let handle = guard.handle().unwrap();
    let adopted = theirs.adopt(&handle).await.unwrap();
    guard.release().await.unwrap();
    let next = take(&ours, "job").await;
    assert_eq!(lease_of(&server, "job").unwrap(), lease);
    for stale in [theirs.release(&handle).await, adopted.release().await] {
        assert_eq!(stale.unwrap(), ReleaseOutcome::WasLost);
    }
    assert_eq!(
        ours.release(&handle).await.unwrap(),
        ReleaseOutcome::WasLost
    );
    lives(&next).await;
    next.release().await.unwrap();
}

/// The other process has read the entry when its owner releases the lock and takes it again, with the same key and lease.
#[tokio::test(flavor = "multi_thread")]
async fn late_release_of_a_handle_spares_the_next_lock() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let (ours, theirs) = (with_idle_lease(&url(&server)).await, through(&network));
    assert_eq!(theirs.holders("warm").await.unwrap().len(), 0);
    let guard = take(&ours, "job").await;
    let (key, handle) = (key_of(&server, "job"), guard.handle().unwrap());
    network.set(NetworkFault::SlowRequests(SLOW));
    let before = server.calls("Range");
    let releasing = spawn(async move { theirs.release(&handle).await });
    until("the entry is read", || server.calls("Range") > before);
    network.hold_requests();
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    let next = take(&ours, "job").await;
    assert_eq!(key_of(&server, "job"), key);
    network.deliver_requests();
    // What it says depends on time: a release that is sent again and finds nothing counts as one that freed the lock. An error says that
    // the handle is of another address.
    let _ = releasing.await.unwrap();
    lives(&next).await;
    next.release().await.unwrap();
}

/// The client releases the guard and a handle of one lock at the same time. The release that began later revokes the lease, and its
/// request arrives after the answer to the first one.
#[test]
fn lease_that_two_releases_end_is_not_used_again() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let url = format!("etcd://127.0.0.1:{}", network.port());
    let runtime = || Builder::new_multi_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let (client, guard) = first.block_on(async {
        let client = with_idle_lease(&url).await;
        let guard = take(&client, "job").await;
        // Opens the connection of the client's thread.
        assert_eq!(client.holders("job").await.unwrap().len(), 1);
        (client, guard)
    });
    let lease = lease_of(&server, "job").unwrap();
    network.hold_requests();
    second.block_on(async {
        let other = take(&client, "other").await;
        let handle = guard.handle().unwrap();
        let later = client.release(&handle);
        let both = spawn(join(guard.release(), later));
        until("the first release is over", || {
            lease_of(&server, "job").is_none()
        });
        let next = take(&client, "next").await;
        assert_ne!(lease_of(&server, "next").unwrap(), lease);
        network.deliver_requests();
        let (released, _) = both.await.unwrap();
        assert_eq!(released.unwrap(), ReleaseOutcome::Released);
        until("the lease has ended", || has_ended(&server, &lease));
        lives(&next).await;
        next.release().await.unwrap();
        other.release().await.unwrap();
    });
}

/// The lease of a shared lock was written again by the downgrade.
#[tokio::test]
async fn downgraded_lock_gives_its_lease_back() {
    let server = EtcdServer::start();
    let client = with_idle_lease(&url(&server)).await;
    let guard = take(&client, "job").await;
    let lease = lease_of(&server, "job");
    guard.downgrade().await.unwrap();
    guard.release().await.unwrap();
    let next = take(&client, "job").await;
    assert_eq!(lease_of(&server, "job"), lease);
    next.release().await.unwrap();
}
