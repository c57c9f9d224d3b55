//! Another library on the plain wire protocol. It and this library exclude each other.

use leasehold::Mode;
use leasehold_testkit::servers::RedisPy;

use crate::support::{is_busy, permits, start, take};

#[tokio::test]
async fn redis_py_and_locks_exclude_each_other() {
    let (server, locks) = start();
    let mut python = RedisPy::start(server.port());
    for mode in [Mode::Exclusive, Mode::Shared, permits(2)] {
        let guard = take(&locks, "deploy", mode).await;
        assert!(!python.acquire("deploy"), "{mode}");
        guard.release().await.unwrap();
        assert!(python.acquire("deploy"), "{mode}");
        assert!(is_busy(&locks, "deploy").await);
        let holders = locks.holders("deploy").await.unwrap();
        assert_eq!(holders[0].owner, None);
        python.release("deploy");
    }
}
