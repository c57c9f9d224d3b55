//! A release passes the lock to a waiter of the same client.

use leasehold::Mode;
use leasehold::store::background::spawn;
use leasehold_testkit::servers::EtcdServer;

use crate::{client, lock, url};

/// The number of writes so far.
fn revision(server: &EtcdServer) -> i64 {
    let output = server.etcdctl(&["get", "nothing", "--write-out=fields"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let revision = lines.find_map(|line| line.strip_prefix("\"Revision\" : "));
    revision.unwrap().parse().unwrap()
}

/// A waiter writes its entry. The release that passes the lock on is one write, and otherwise the release and the grant are two.
#[tokio::test]
async fn release_grants_the_waiter_of_the_same_client() {
    const HAND_OVERS: i64 = 20;
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let mut guard = lock(&client, "job").acquire().await.unwrap();
    let before = revision(&server);
    for _ in 0..HAND_OVERS {
        let waiting = spawn(lock(&client, "job").acquire());
        while client.waiters(guard.key()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let fence = guard.fence();
        guard.release().await.unwrap();
        guard = waiting.await.unwrap().unwrap();
        assert!(guard.is_valid() && guard.fence() > fence);
    }
    // A release may come before its client knows who waits.
    let written = revision(&server) - before;
    assert!(written < 3 * HAND_OVERS, "{written} writes");
    guard.release().await.unwrap();
    assert!(client.close(crate::LONG).await.is_ok());
    assert!(
        server
            .etcdctl(&["get", "job/", "--prefix", "--keys-only"])
            .stdout
            .is_empty()
    );
}

#[tokio::test]
async fn waiter_that_is_gone_is_passed_over() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let guard = lock(&client, "job").acquire().await.unwrap();
    let waits = |count: usize| {
        let (client, key) = (client.clone(), guard.key().clone());
        async move {
            while client.waiters(&key).await.unwrap().len() != count {
                tokio::task::yield_now().await;
            }
        }
    };
    let gone = spawn(lock(&client, "job").acquire());
    waits(1).await;
    let next = spawn(lock(&client, "job").acquire());
    waits(2).await;
    gone.abort();
    guard.release().await.unwrap();
    next.await.unwrap().unwrap().release().await.unwrap();
}

/// The reader passes the waiting writer, because the holder shares the lock. Then the holder must not pass the lock on.
#[tokio::test]
async fn writer_waits_for_readers_of_downgraded_holder() {
    let server = EtcdServer::start();
    let (ours, theirs) = (client(&url(&server)), client(&url(&server)));
    let guard = lock(&ours, "job").acquire().await.unwrap();
    let writing = spawn(lock(&ours, "job").acquire());
    while ours.waiters("job").await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    guard.downgrade().await.unwrap();
    let reading = lock(&theirs, "job").mode(Mode::Shared).barging(true);
    let reader = reading.acquire().await.unwrap();
    guard.release().await.unwrap();
    let holders = theirs.holders("job").await.unwrap();
    let modes: Vec<Mode> = holders.iter().map(|holder| holder.mode).collect();
    assert_eq!(modes, [Mode::Shared]);
    reader.release().await.unwrap();
    writing.await.unwrap().unwrap().release().await.unwrap();
}
