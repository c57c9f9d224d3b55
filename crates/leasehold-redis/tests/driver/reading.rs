//! Which runtime reads the replies.

use std::sync::{Arc, mpsc};

use leasehold::store::background;
use leasehold_testkit::servers::{RedisSet, until};
use tokio::runtime::{Builder, Runtime};

use super::fixture::{Client, locks};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

async fn cycle(client: &Client, key: &str) {
    let (lock_request, _) = client.acquire(key).await;
    client.release(lock_request).await;
}

#[test]
fn runtimes_may_come_and_go() {
    let set = RedisSet::start(3);
    let client = Client::of(&set);
    for _ in 0..5 {
        runtime().block_on(cycle(&client, "lock"));
        pollster::block_on(cycle(&client, "lock"));
    }
    until("the locks are free", || locks(&set).is_empty());
}

#[test]
fn idle_runtime_holds_up_no_other() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let idle = runtime();
    // A task of this runtime reads from now on, and is not polled again.
    idle.block_on(cycle(&client, "lock"));
    for _ in 0..20 {
        pollster::block_on(cycle(&client, "lock"));
    }
    drop(idle);
}

#[test]
fn blocked_runtime_holds_up_no_other() {
    let set = RedisSet::start(1);
    let client = Arc::new(Client::of(&set));
    let (blocks, is_blocked) = mpsc::channel();
    let (unblock, until_then) = mpsc::channel::<()>();
    let blocked = Arc::clone(&client);
    background::thread("blocked", move || {
        runtime().block_on(async {
            cycle(&blocked, "lock").await;
            blocks.send(()).unwrap();
            // A mistake of a caller.
            let _ = until_then.recv();
        });
    })
    .unwrap();
    is_blocked.recv().unwrap();
    runtime().block_on(async {
        for _ in 0..20 {
            cycle(&client, "lock").await;
        }
    });
    drop(unblock);
}

#[test]
fn runtime_without_io_gets_its_replies() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let runtime = Builder::new_current_thread().build().unwrap();
    for _ in 0..3 {
        runtime.block_on(cycle(&client, "lock"));
    }
}
