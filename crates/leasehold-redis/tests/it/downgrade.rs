//! An exclusive lease that becomes a shared one.

use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{Client, LostReason, Mode};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};

use crate::support::{client, eventually, hold, is_busy, left, quorum, share, value};

#[tokio::test]
async fn downgraded_writer_admits_readers_and_no_writer() {
    let server = RedisServer::start();
    let (locks, other) = (client(&server), client(&server));
    let guard = hold(&locks, "doc").await;
    let before = left(&server, "doc");
    guard.downgrade().await.unwrap();
    assert!(left(&server, "doc") >= before - 1_000);
    let sentinel = Reply::Bulk("leasehold:shared".into());
    assert_eq!(value(&server, "doc"), sentinel);
    let foreign = server.command(&["SET", "doc", "token", "NX", "PX", "1000"]);
    assert_eq!(foreign, Reply::Nil);
    assert!(is_busy(&other, "doc").await);
    let holders = other.holders("doc").await.unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!(
        (holders[0].owner, holders[0].mode),
        (Some(guard.owner()), Mode::Shared)
    );
    let reader = share(&other, "doc").await;
    assert!(reader.fence() > guard.fence());
    guard.release().await.unwrap();
    assert!(is_busy(&locks, "doc").await);
    reader.release().await.unwrap();
    assert_eq!(value(&server, "doc"), Reply::Nil);
}

#[tokio::test]
async fn lost_lease_does_not_become_shared() {
    let server = RedisServer::start();
    let locks = client(&server);
    let guard = hold(&locks, "doc").await;
    server.command(&["SET", "doc", "theirs", "PX", "60000"]);
    guard.downgrade().await.unwrap_err();
    assert_eq!(guard.lost().await, LostReason::Taken);
    assert_eq!(value(&server, "doc"), Reply::Bulk("theirs".into()));
}

/// All waiting readers enter, from one client or several.
#[tokio::test]
async fn downgrade_admits_all_waiting_readers() {
    const READERS: usize = 24;
    for members in [1, 5] {
        let servers = RedisSet::start(members);
        if members > 1 {
            quorum(&servers).init().await.unwrap();
        }
        let writer = Client::new(quorum(&servers));
        let clients = [(); 4].map(|()| Client::new(quorum(&servers)));
        let guard = writer.lock("doc").acquire().await.unwrap();
        let reading = (0..READERS).map(|number| {
            let lock = clients[number % clients.len()].lock("doc");
            lock.mode(Mode::Shared)
                .wait(Duration::from_secs(10))
                .acquire()
        });
        let downgrading = async {
            eventually("all wait", async || {
                let waiters = writer.waiters("doc").await.unwrap();
                (waiters.len() == READERS).then_some(())
            })
            .await;
            guard.downgrade().await.unwrap();
        };
        let (entered, ()) = tokio::join!(join_all(reading), downgrading);
        for reader in entered {
            assert!(reader.unwrap().is_valid());
        }
        drop(guard);
    }
}
