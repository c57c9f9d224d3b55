//! An exclusive lease that becomes a shared one.

use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{Client, Mode};
use leasehold_testkit::servers::RedisSet;

use crate::support::{eventually, quorum};

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
