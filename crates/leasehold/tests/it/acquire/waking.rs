//! Callers are woken wherever they wait. In real time, since it is about threads.

use leasehold::memory::MemoryStore;
use leasehold::store::background;
use leasehold::{Client, ReleaseOutcome};

const CALLERS: usize = 32;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
}

/// All at once.
async fn take_and_release(client: &Client) {
    let callers = (0..CALLERS).map(|caller| {
        let lock = client.lock(format!("lock/{caller}"));
        background::spawn(async move {
            for _ in 0..10 {
                let guard = lock.acquire().await.expect("granted");
                assert_eq!(
                    guard.release().await.expect("freed"),
                    ReleaseOutcome::Released
                );
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("it ends");
    }
}

#[test]
fn many_callers_of_one_runtime_after_another() {
    let client = Client::new(MemoryStore::new());
    for _ in 0..3 {
        runtime().block_on(take_and_release(&client));
    }
    let guard = pollster::block_on(client.lock("x").acquire()).unwrap();
    pollster::block_on(guard.release()).unwrap();
}

#[test]
fn caller_blocks_its_runtimes_thread() {
    let client = Client::new(MemoryStore::new());
    runtime().block_on(async {
        take_and_release(&client).await;
        let waiting = client.lock("held");
        let guard = waiting.acquire().await.unwrap();
        // It waits all the while.
        let other = background::spawn(async move { waiting.acquire().await.map(drop) });
        let lock = client.lock("x");
        let blocking = background::spawn(async move {
            for _ in 0..10 {
                let guard = pollster::block_on(lock.acquire()).unwrap();
                pollster::block_on(guard.release()).unwrap();
            }
        });
        blocking.await.unwrap();
        guard.release().await.unwrap();
        other.await.unwrap().unwrap();
    });
}

#[test]
fn a_caller_whose_runtime_ended_before_the_answer() {
    let client = Client::new(MemoryStore::new());
    let held = pollster::block_on(client.lock("x").acquire()).unwrap();
    let waits = runtime();
    let lock = client.lock("x");
    let caller = waits.spawn(async move { lock.acquire().await.map(drop) });
    waits.block_on(take_and_release(&client));
    drop(waits);
    drop(caller);
    pollster::block_on(held.release()).unwrap();
    runtime().block_on(take_and_release(&client));
    // No caller waits now, and nothing is held.
    let guard = pollster::block_on(client.lock("x").acquire()).unwrap();
    pollster::block_on(guard.release()).unwrap();
}

/// Its tasks run on a thread that lends it nothing but its handle.
#[test]
fn callers_next_to_a_stopped_runtime() {
    let client = Client::new(MemoryStore::new());
    let runtime = runtime();
    runtime.block_on(take_and_release(&client));
    let callers = tokio::task::LocalSet::new();
    for caller in 0..CALLERS {
        let lock = client.lock(format!("lock/{caller}"));
        callers.spawn_local(async move {
            let guard = lock.acquire().await.expect("granted");
            assert_eq!(
                guard.release().await.expect("freed"),
                ReleaseOutcome::Released
            );
        });
    }
    runtime.handle().block_on(callers);
}
