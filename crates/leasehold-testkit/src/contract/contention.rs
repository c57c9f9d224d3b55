use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use leasehold::Client;

use super::fixture::{Fixture, LONG};
use super::worker::Worker;

pub(crate) async fn a1_64_contenders_count_exactly(fixture: &Fixture) {
    const CONTENDERS: u64 = 64;
    const SECTIONS: u64 = 3;
    let key = fixture.key();
    let clients = [(); 4].map(|()| Client::new(fixture.open()));
    let counter = Arc::new(AtomicU64::new(0));
    let last_fence = Arc::new(AtomicU64::new(0));
    let contenders = (0..CONTENDERS).map(|contender| {
        let lock = clients[contender as usize % clients.len()]
            .lock(&key)
            .ttl(LONG);
        let (counter, last_fence) = (Arc::clone(&counter), Arc::clone(&last_fence));
        async move {
            for _ in 0..SECTIONS {
                let guard = lock.acquire().await.expect("the lock");
                // Read, let the others run, write: the count is exact only if the others are kept out.
                let read = counter.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                counter.store(read + 1, Ordering::SeqCst);
                let before = last_fence.swap(guard.fence().get(), Ordering::SeqCst);
                assert!(
                    before < guard.fence().get(),
                    "{before} then {}",
                    guard.fence()
                );
                guard.release().await.expect("a release");
            }
        }
    });
    join_all(contenders).await;
    assert_eq!(counter.load(Ordering::SeqCst), CONTENDERS * SECTIONS);
}

pub(crate) async fn a1_processes_count_exactly_with_growing_fences(fixture: &Fixture) {
    const PROCESSES: u32 = 8;
    const SECTIONS: u32 = 200;
    let (address, key) = (fixture.harness.address(), fixture.key());
    let folder = tempfile::tempdir().expect("a folder");
    let counter = folder.path().join("counter");
    let log = counter.with_extension("fences");
    std::fs::write(&counter, "0").expect("the counter");
    std::fs::write(&log, "").expect("the log");
    let workers: Vec<Worker> = (0..PROCESSES)
        .map(|_| {
            Worker::counting(
                fixture.suite.name,
                &address,
                key.as_str(),
                &counter,
                SECTIONS,
            )
        })
        .collect();
    workers.into_iter().for_each(Worker::finish);
    let counted = std::fs::read_to_string(&counter).expect("the counter");
    assert_eq!(counted, (PROCESSES * SECTIONS).to_string());
    let fences = std::fs::read_to_string(&log).expect("the log");
    let fences: Vec<u64> = fences
        .lines()
        .map(|line| line.parse().expect("a fence"))
        .collect();
    assert_eq!(fences.len(), (PROCESSES * SECTIONS) as usize);
    assert!(
        fences.is_sorted_by(|a, b| a < b),
        "fences in the order of the sections"
    );
}
