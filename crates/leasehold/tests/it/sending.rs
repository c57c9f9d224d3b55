//! Which types may cross threads: part of the public promise.

use leasehold::{Client, Error, Fence, Guard, Key, Lock, blocking};

fn is_send<T: Send>(_: &T) {}
fn is_send_sync<T: Send + Sync + 'static>() {}

#[test]
fn all_types_cross_threads() {
    is_send_sync::<Client>();
    is_send_sync::<Lock>();
    is_send_sync::<Guard>();
    is_send_sync::<Key>();
    is_send_sync::<Fence>();
    is_send_sync::<Error>();
    is_send_sync::<blocking::Client>();
    is_send_sync::<blocking::Guard>();
}

#[test]
fn all_futures_cross_threads() {
    let client = Client::new(leasehold::memory::MemoryStore::new());
    let lock = client.lock("x");
    is_send(&lock.acquire());
    is_send(&lock.try_acquire());
    is_send(&client.holders("x"));
    is_send(&async move {
        let guard = lock.acquire().await?;
        guard.deadline_moved(None).await;
        guard.lost().await;
        guard.run(async |guard| guard.lost().await).await
    });
    let (set, election) = (client.lock_all(["a", "b"]), client.election("x"));
    is_send(&async move {
        let guards = set.acquire().await?;
        guards.run(async |guards| guards.lost().await).await?;
        let leadership = election.campaign().await?;
        leadership
            .run(async |leadership| leadership.publish("a").await)
            .await?
    });
    let once = client.once("x");
    is_send(&async move {
        once.run(async |guard| Err::<String, _>(guard.lost().await))
            .await
    });
}
