//! The runtimes of callers, which drive connections.

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::EtcdServer;
use tokio::runtime::Builder;

use crate::{LONG, client, lock, url};

#[test]
fn lock_outlives_the_runtime_that_took_it() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let guard = first.block_on(async { lock(&client, "job").acquire().await.unwrap() });
    drop(first);
    assert!(guard.is_valid());
    let fence = guard.fence();
    runtime().block_on(async {
        let busy = lock(&client, "job").try_acquire().await.unwrap();
        assert!(busy.is_none());
        guard.release().await.unwrap();
        let next = lock(&client, "job").acquire().await.unwrap();
        assert!(next.fence() > fence);
        next.release().await.unwrap();
    });
}

#[tokio::test]
async fn free_lock_needs_one_connection() {
    let server = EtcdServer::start();
    let network = Proxy::to(server.port());
    let client = client(&format!("etcd://127.0.0.1:{}", network.port()));
    for _ in 0..20 {
        let guard = lock(&client, "job").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    assert_eq!(network.opened(), 1);
}

/// The runtime of the attempt is idle from then on.
#[test]
fn close_waits_for_no_idle_runtime() {
    let server = EtcdServer::start();
    let (holder, client) = (client(&url(&server)), client(&url(&server)));
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (idle, other) = (runtime(), runtime());
    let guard = other.block_on(lock(&holder, "job").acquire()).unwrap();
    let busy = idle.block_on(lock(&client, "job").try_acquire());
    assert!(busy.unwrap().is_none());
    let closed = other.block_on(async {
        let end = SystemClock.now() + LONG / 3;
        within(&SystemClock, end, client.close(LONG)).await
    });
    assert!(closed.is_some());
    other.block_on(guard.release()).unwrap();
    drop(idle);
}

/// The runtime cannot drive a connection, so the thread of the client does.
#[test]
fn runtime_without_io_gets_locks() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let guard = lock(&client, "job").acquire().await.unwrap();
        let waiting = client.lock("job").acquire();
        let (released, next) = futures_util::future::join(guard.release(), waiting).await;
        released.unwrap();
        next.unwrap().release().await.unwrap();
    });
}
