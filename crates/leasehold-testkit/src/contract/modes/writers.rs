use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{Guard, Key, Lock, Mode};

use super::permits::{THREE, permits};
use crate::contract::fixture::{Fixture, until};
use crate::contract::waiting::crowd::{Crowd, alongside};

/// Returns some clients, if the store prefers writers.
fn crowd(fixture: &Fixture) -> Option<Crowd<'_>> {
    let crowd = Crowd::new(fixture, 3);
    crowd.store.guarantees().shared.then_some(crowd)
}

impl Crowd<'_> {
    fn reads(&self, client: usize, key: &Key) -> Lock {
        self.lock(client, key).mode(Mode::Shared)
    }

    /// Waits until a waiting writer keeps readers out. Before that, readers get in.
    async fn until_shut(&self, key: &Key) {
        until(self.fixture, "readers are kept out", async || {
            tried(&self.reads(0, key)).await.is_none()
        })
        .await;
    }
}

async fn tried(lock: &Lock) -> Option<Guard> {
    let asked = lock.clone().wait(Duration::ZERO).try_acquire();
    asked.await.expect("an answer")
}

async fn freed(guard: Guard) {
    guard.release().await.expect("a release");
}

pub(crate) async fn w5_a_waiting_writer_keeps_later_readers_out(fixture: &Fixture) {
    let Some(crowd) = crowd(fixture) else { return };
    let (key, order) = (fixture.key(), RefCell::new(Vec::new()));
    let serves = async |number: u32, lock: Lock| {
        let guard = lock.acquire().await.expect("the lock");
        order.borrow_mut().push(number);
        freed(guard).await;
    };
    let first = crowd.reads(0, &key).acquire().await.expect("the lock");
    let second = tried(&crowd.reads(2, &key)).await.expect("readers share");
    let writes = Box::pin(serves(1, crowd.lock(1, &key)));
    let writes = alongside(writes, crowd.until_shut(&key)).await;
    let reads = Box::pin(serves(2, crowd.reads(2, &key)));
    let tries = async {
        for _ in 0..3 {
            assert!(
                tried(&crowd.reads(0, &key)).await.is_none(),
                "past a writer"
            );
            fixture.pause().await;
        }
        if crowd.store.guarantees().permits {
            let permit = Mode::Permit(permits(THREE));
            assert!(tried(&crowd.lock(0, &key).mode(permit)).await.is_none());
        }
    };
    let reads = alongside(reads, tries).await;
    let ahead = crowd.reads(0, &key).barging(true);
    freed(tried(&ahead).await.expect("it goes ahead of the writer")).await;
    let free = async {
        freed(first).await;
        freed(second).await;
    };
    futures_util::join!(writes, reads, free);
    assert_eq!(order.into_inner(), [1, 2]);
}

pub(crate) async fn w5_cancelled_writer_lets_readers_in(fixture: &Fixture) {
    let Some(crowd) = crowd(fixture) else { return };
    let key = fixture.key();
    let first = crowd.reads(0, &key).acquire().await.expect("the lock");
    let writes = Box::pin(async {
        let guard = crowd.lock(1, &key).acquire().await;
        panic!("beside a reader: {guard:?}");
    });
    let writes = alongside(writes, crowd.until_shut(&key)).await;
    let reads = Box::pin(async {
        freed(crowd.reads(2, &key).acquire().await.expect("the lock")).await;
    });
    let reads = alongside(reads, fixture.pause()).await;
    drop(writes);
    // Reads next to the first reader, which stays.
    reads.await;
    freed(first).await;
}

pub(crate) async fn w5_steady_readers_starve_no_writer(fixture: &Fixture) {
    let Some(crowd) = crowd(fixture) else { return };
    let (key, inside, has_written) = (fixture.key(), Cell::new(0), Cell::new(false));
    let first = crowd.reads(0, &key).acquire().await.expect("the lock");
    // A reader leaves only while another one reads, as long as others can come in.
    let reads = async |client| {
        while !has_written.get() {
            let guard = crowd.reads(client, &key).acquire().await.expect("the lock");
            inside.set(inside.get() + 1);
            for _ in 0..5 {
                if inside.get() > 1 {
                    break;
                }
                fixture.pause().await;
            }
            fixture.pause().await;
            inside.set(inside.get() - 1);
            freed(guard).await;
        }
    };
    let writes = async {
        until(fixture, "somebody reads", async || inside.get() > 0).await;
        freed(first).await;
        let guard = crowd.lock(1, &key).acquire().await.expect("the lock");
        assert_eq!(inside.get(), 0);
        has_written.set(true);
        freed(guard).await;
    };
    futures_util::join!(join_all((0..6).map(reads)), writes);
}

pub(crate) async fn w5_steady_writers_starve_no_reader(fixture: &Fixture) {
    let Some(crowd) = crowd(fixture) else { return };
    let (key, has_read) = (fixture.key(), Cell::new(false));
    let first = crowd.lock(0, &key).acquire().await.expect("the lock");
    let writes = async |client| {
        while !has_read.get() {
            let guard = crowd.lock(client, &key).acquire().await.expect("the lock");
            fixture.pause().await;
            freed(guard).await;
        }
    };
    let reads = async {
        fixture.pause().await;
        freed(first).await;
        let guard = crowd.reads(1, &key).acquire().await.expect("the lock");
        has_read.set(true);
        freed(guard).await;
    };
    futures_util::join!(join_all((0..6).map(writes)), reads);
}
