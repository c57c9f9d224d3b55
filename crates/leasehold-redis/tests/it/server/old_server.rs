//! Servers before Redis 7.0: a real server whose version a proxy changes on the way.

use std::sync::Arc;

use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::RedisServer;

use crate::proxy::proxy;
use crate::support::{calls, client_at, hold, is_busy, permit, refused, share};

/// Returns a client of the server through a proxy. The proxy replaces the version in INFO by `version`,
/// which has the same length.
async fn of_version(server: &RedisServer, version: &'static str) -> Client {
    let rewrite = move |bytes: &mut Vec<u8>| {
        let field = b"redis_version:";
        let found = bytes.windows(field.len()).position(|part| part == field);
        if let Some(found) = found {
            let digits = bytes[found + field.len()..].iter_mut();
            let digits = digits.take_while(|byte| **byte != b'\r');
            let version = version.bytes().chain(std::iter::repeat(b'0'));
            digits.zip(version).for_each(|(old, new)| *old = new);
        }
    };
    let port = proxy(server.port(), Arc::new(rewrite)).await;
    client_at(&format!("redis://127.0.0.1:{port}"))
}

/// The plain commands need Redis 7.0.
#[tokio::test]
async fn redis_6_2_takes_locks_by_script() {
    let server = RedisServer::start();
    let (locks, other) = (
        of_version(&server, "6.2.").await,
        of_version(&server, "6.2.").await,
    );
    let first = hold(&locks, "deploy").await;
    let fence = first.fence();
    assert!(is_busy(&other, "deploy").await);
    first.release().await.unwrap();
    // A client may use plain commands when it has been connected for a while.
    let settled = SystemClock.now() + std::time::Duration::from_millis(1_500);
    SystemClock.sleep_until(settled).await;
    let second = hold(&locks, "deploy").await;
    assert!(second.fence() > fence);
    second.release().await.unwrap();
    // Plain commands use SET without a script, so there would be fewer calls of scripts.
    assert_eq!(calls(&server, "evalsha"), 5);
}

#[tokio::test]
async fn redis_6_2_has_permits_and_readers() {
    let server = RedisServer::start();
    let locks = of_version(&server, "6.2.").await;
    let first = permit(&locks, "workers", 1).await;
    let semaphore = locks.semaphore("workers", 1);
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    first.release().await.unwrap();
    permit(&locks, "workers", 1).await.release().await.unwrap();
    let _reader = share(&locks, "doc").await;
    assert!(is_busy(&locks, "doc").await);
}

#[tokio::test]
async fn redis_6_0_is_refused() {
    let server = RedisServer::start();
    let locks = of_version(&server, "6.0.").await;
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), leasehold::ErrorKind::Unsupported);
    assert!(error.to_string().contains("at least 6.2"), "{error}");
}
