//! Several keys as one lock, on five servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::Client;
use leasehold::clock::{Clock, SystemClock, within};
use leasehold_testkit::servers::{LIMIT, RedisServer, RedisSet, Reply, until};

use crate::support::quorum;

/// How often each task takes its set of keys.
const ROUNDS: u64 = 6;
const SETS: [[&str; 3]; 4] = [
    ["a", "b", "c"],
    ["c", "b", "a"],
    ["d", "c", "b"],
    ["a", "d", "b"],
];

/// How often a lock was held, and how many hold it now.
#[derive(Default)]
struct Count {
    done: AtomicU64,
    inside: AtomicU64,
}

#[tokio::test]
async fn overlapping_sets_end_and_each_key_is_exclusive() {
    let servers = RedisSet::start(5);
    quorum(&servers).init().await.unwrap();
    let keys = ["a", "b", "c", "d"];
    let counts: BTreeMap<&str, Count> = keys.map(|key| (key, Count::default())).into();
    let tasks = (0..8).map(async |number: usize| {
        let client = Client::new(quorum(&servers));
        let names = SETS[number % SETS.len()];
        for _ in 0..ROUNDS {
            let guards = client.lock_all(names).acquire().await.unwrap();
            let seen = names.map(|name| counts[name].done.load(Ordering::Relaxed));
            for name in names {
                assert_eq!(
                    counts[name].inside.fetch_add(1, Ordering::Relaxed),
                    0,
                    "{name}"
                );
            }
            SystemClock
                .sleep_until(SystemClock.now() + Duration::from_millis(1))
                .await;
            for (name, seen) in names.into_iter().zip(seen) {
                counts[name].done.store(seen + 1, Ordering::Relaxed);
                counts[name].inside.fetch_sub(1, Ordering::Relaxed);
            }
            guards.release().await;
        }
    });
    let end = SystemClock.now() + LIMIT;
    assert!(
        within(&SystemClock, end, join_all(tasks)).await.is_some(),
        "a deadlock"
    );
    for (name, count) in counts {
        let takers = (0..8).filter(|number| SETS[number % SETS.len()].contains(&name));
        assert_eq!(
            count.done.into_inner(),
            takers.count() as u64 * ROUNDS,
            "{name}"
        );
        let free = |server: &RedisServer| server.command(&["EXISTS", name]) == Reply::Integer(0);
        // A release is complete once a majority has it.
        until(&format!("{name} is free"), || servers.iter().all(free));
    }
}
