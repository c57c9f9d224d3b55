use leasehold::store::background;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{client, hold, key, member, pass, permit, queued, share};

#[tokio::test]
async fn lock_in_use_keeps_its_counter() {
    let server = RedisServer::start();
    let (store, locks) = (member(&server), client(&server));
    let held = [
        hold(&locks, "alone").await,
        share(&locks, "together").await,
        permit(&locks, "permit", 2).await,
    ];
    pass(&locks, "free").await;

    let keys = ["alone", "free", "together", "permit", "never used"].map(key);
    let in_use = store.forget(&keys).await.unwrap();
    assert_eq!(in_use, ["alone", "together", "permit"].map(key));
    let fences = |server: &RedisServer| match server.command(&["KEYS", "leasehold:fence:*"]) {
        Reply::Array(fences) => fences.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(fences(&server), 3);

    for guard in held {
        guard.release().await.unwrap();
    }
    // During a gap for foreign clients the counter is the only key of a lock.
    let gap = ["leasehold:fence:0:{free}:free", "9000000000000", "gap"];
    server.command(&["ZADD", gap[0], gap[1], gap[2]]);
    assert_eq!(store.forget(&keys).await.unwrap(), [key("free")]);
    server.command(&["ZREM", gap[0], gap[2]]);
    assert_eq!(store.forget(&keys).await.unwrap(), []);
    assert_eq!(fences(&server), 0);

    // A client sets the expiry of a counter with its first use, and then every ten minutes.
    let later = client(&server);
    pass(&later, "free").await;
    let rest = server.command(&["PTTL", "leasehold:fence:0:{free}:free"]);
    assert!(matches!(rest, Reply::Integer(1..)), "{rest:?}");
}

#[tokio::test]
async fn lock_with_waiters_keeps_its_counter() {
    let server = RedisServer::start();
    let (store, locks) = (member(&server), client(&server));
    server.command(&["SET", "deploy", "theirs"]);
    let waits = background::spawn(locks.lock("deploy").acquire());
    queued(&server, "deploy", 1).await;
    let counter = "leasehold:fence:0:{deploy}:deploy";
    server.command(&["ZADD", counter, "7", "f"]);
    let in_use = store.forget(&[key("deploy")]).await.unwrap();
    assert_eq!(in_use, [key("deploy")]);
    assert_eq!(server.command(&["EXISTS", counter]), Reply::Integer(1));
    server.command(&["DEL", "deploy"]);
    waits.await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(store.forget(&[key("deploy")]).await.unwrap(), []);
    // Any record of a lock shows that the lock is in use.
    for kind in ["readers", "queue", "slots"] {
        let record = format!("leasehold:{kind}:{{deploy}}:deploy");
        server.command(&["HSET", &record, "a", "1"]);
        let in_use = store.forget(&[key("deploy")]).await.unwrap();
        assert_eq!(in_use, [key("deploy")], "{kind}");
        server.command(&["DEL", &record]);
    }
}

#[tokio::test]
async fn lock_of_another_library_is_not_touched() {
    let server = RedisServer::start();
    server.command(&["HSET", "theirs", "owner", "1"]);
    let store = member(&server);
    let in_use = store.forget(&[key("theirs")]).await.unwrap();
    assert_eq!(in_use, [key("theirs")]);
    assert!(store.holders(&key("theirs")).await.is_ok());
}
