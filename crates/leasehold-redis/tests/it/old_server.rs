//! Servers before Redis 7.0, for which the attempt is a script: a real server, whose version a
//! proxy lowers on the way.

use std::sync::Arc;

use leasehold::{Release, Store};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::proxy::proxy;
use crate::support::{busy, claim, granted, one_of, refused, released, shared};

/// Writes `version` over the one that INFO tells, without changing its length.
async fn of_version(server: &RedisServer, version: &'static str) -> RedisMember {
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
    RedisMember::new(format!("redis://127.0.0.1:{port}")).unwrap()
}

fn scripts_run(server: &RedisServer) -> usize {
    match server.command(&["INFO", "commandstats"]) {
        Reply::Bulk(stats) => stats.matches("cmdstat_evalsha:").count(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn redis_6_2_takes_locks_by_script() {
    let server = RedisServer::start();
    let store = of_version(&server, "6.2.").await;
    let (mine, other) = (claim("deploy"), claim("deploy"));
    let first = granted(&store, &mine).await;
    assert_eq!(scripts_run(&server), 1);
    assert!(first.fence.get() > mine.proposal.as_micros());
    assert!(first.sample.is_some());
    assert!(granted(&store, &mine).await.fence > first.fence, "a resend");
    assert_eq!(busy(&store, &other).await.holder, Some(mine.owner));
    released(&store, &mine).await;
    assert!(granted(&store, &other).await.fence > first.fence);
    assert_eq!(store.release(&mine).await.unwrap(), Release::WasLost);
}

#[tokio::test]
async fn redis_6_2_has_permits_and_readers() {
    let server = RedisServer::start();
    let store = of_version(&server, "6.2.").await;
    let (first, second) = (one_of("workers", 1), one_of("workers", 1));
    granted(&store, &first).await;
    busy(&store, &second).await;
    released(&store, &first).await;
    granted(&store, &second).await;
    granted(&store, &shared("doc")).await;
    busy(&store, &claim("doc")).await;
}

#[tokio::test]
async fn redis_6_0_is_refused() {
    let server = RedisServer::start();
    let store = of_version(&server, "6.0.").await;
    let error = refused(&store, &claim("deploy")).await;
    assert_eq!(error.kind(), leasehold::ErrorKind::Unsupported);
    assert!(error.to_string().contains("at least 6.2"), "{error}");
}
