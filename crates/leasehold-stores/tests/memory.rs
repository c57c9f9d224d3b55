//! The names of locks do not make a client grow without end.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod common;

use std::fs;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{Place, number};
use futures_util::StreamExt as _;
use futures_util::stream::iter;

/// All tests measure the memory of this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how much memory this process uses, in bytes.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// How many calls are under way at once.
const AT_ONCE: usize = 64;

/// What a name may leave behind on average: less than an entry of a map, but more than the noise of an allocator.
const LEFT_MAX: usize = 150;

/// Runs `work` for the first quarter of `count` numbers, and measures what each number of the others adds. Returns the least of
/// the three: a leak is in all, but a thread that starts late takes memory once.
async fn growth(count: usize, work: impl AsyncFn(Range<usize>)) -> usize {
    let quarter = count / 4;
    work(0..quarter).await;
    let mut least = usize::MAX;
    for begin in [quarter, 2 * quarter, 3 * quarter] {
        let before = resident();
        work(begin..begin + quarter).await;
        least = least.min(resident().saturating_sub(before) / quarter);
    }
    least
}

async fn names_leave_nothing(place: Place) {
    let client = place.client();
    let take = async |number: usize| {
        let lock = client.lock(format!("a lock with a name of the usual length, {number}"));
        let guard = lock.try_acquire().await.unwrap().expect("a free lock");
        guard.release().await.unwrap();
    };
    let names = number("LEASEHOLD_TEST_NAMES", 10_000);
    let grown = growth(names, async |numbers| {
        iter(numbers).for_each_concurrent(AT_ONCE, take).await;
    });
    let grown = grown.await;
    assert!(grown < LEFT_MAX, "{grown} bytes for each name");
}

/// Calls that give up while they wait leave releases behind, and attempts without a caller. All of that is gone once the
/// store has answered.
async fn give_ups_leave_nothing(place: Place) {
    const BATCH: usize = 250;
    let client = place.client();
    let guard = client.lock("busy").acquire().await.unwrap();
    let give_up = async |_| {
        let lock = client.lock("busy").wait(Duration::from_millis(5));
        assert!(lock.acquire().await.is_err());
    };
    let count = number("LEASEHOLD_TEST_GIVE_UPS", 2_000);
    let grown = growth(count, async |numbers| {
        for _ in numbers.step_by(BATCH) {
            iter(0..BATCH).for_each_concurrent(AT_ONCE, give_up).await;
            // Answered after what came before.
            let other = client.lock("other").acquire().await.unwrap();
            other.release().await.unwrap();
            client.flush(Duration::from_secs(60)).await.unwrap();
        }
    });
    let grown = grown.await;
    assert!(grown < 1_024, "{grown} bytes for each call");
    guard.release().await.unwrap();
    assert!(client.waiters("busy").await.unwrap_or_default().is_empty());
}

macro_rules! on_each_store {
    ($property:ident: $($name:ident = $place:expr;)+) => {$(
        #[tokio::test]
        #[expect(clippy::await_holding_lock, reason = "one test at a time")]
        async fn $name() {
            let _alone = alone();
            $property($place).await;
        }
    )+};
}

on_each_store! { names_leave_nothing:
    names_leave_nothing_on_files = Place::files();
    names_leave_nothing_on_redis = Place::redis();
    names_leave_nothing_on_a_redis_quorum = Place::quorum().await;
    names_leave_nothing_on_postgres = Place::postgres().await;
    names_leave_nothing_on_etcd = Place::etcd();
    names_leave_nothing_on_zookeeper = Place::zookeeper();
}

on_each_store! { give_ups_leave_nothing:
    give_ups_leave_nothing_on_files = Place::files();
    give_ups_leave_nothing_on_redis = Place::redis();
    give_ups_leave_nothing_on_a_redis_quorum = Place::quorum().await;
    give_ups_leave_nothing_on_postgres = Place::postgres().await;
    give_ups_leave_nothing_on_etcd = Place::etcd();
    give_ups_leave_nothing_on_zookeeper = Place::zookeeper();
}
