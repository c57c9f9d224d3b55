use std::time::Duration;

use leasehold::{Attempt, Claim, Departure, Inspection as _, Member};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{claim, granted, key, member, one_of, queued, released, shared};

#[tokio::test]
async fn a_free_lock_leaves_nothing_and_one_in_use_keeps_its_counter() {
    let server = RedisServer::start();
    let store = member(&server);
    let held = [claim("alone"), shared("together"), one_of("permit", 2)];
    for claim in &held {
        granted(&store, claim).await;
    }
    let free = claim("free");
    granted(&store, &free).await;
    released(&store, &free).await;

    let keys = ["alone", "free", "together", "permit", "never used"].map(key);
    let in_use = store.forget(&keys).await.unwrap();
    assert_eq!(in_use, ["alone", "together", "permit"].map(key));
    let fences = |server: &RedisServer| match server.command(&["KEYS", "leasehold:fence:*"]) {
        Reply::Array(fences) => fences.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(fences(&server), 3);

    for claim in &held {
        released(&store, claim).await;
    }
    assert_eq!(store.forget(&keys).await.unwrap(), []);
    assert_eq!(fences(&server), 0);

    // One that begins anew rests as any other.
    granted(&store, &free).await;
    let rest = server.command(&["PTTL", "leasehold:fence:0:{free}:free"]);
    assert!(matches!(rest, Reply::Integer(1..)), "{rest:?}");
}

/// Who holds `deploy`, and who is queued for it.
async fn held_and_waited_for(store: &RedisMember) -> (Claim, Claim) {
    let (held, waits) = (claim("deploy"), claim("deploy"));
    granted(store, &held).await;
    let refused = store.acquire_in_turn(&waits, &queued(&waits)).await;
    assert!(matches!(refused, Ok(Attempt::Busy(_))), "{refused:?}");
    (held, waits)
}

#[tokio::test]
async fn a_lock_that_is_free_but_waited_for_keeps_its_counter() {
    let server = RedisServer::start();
    let store = member(&server);
    let (_, waits) = held_and_waited_for(&store).await;
    // As an operator may free it.
    server.command(&["DEL", "deploy"]);
    let in_use = store.forget(&[key("deploy")]).await.unwrap();
    assert_eq!(in_use, [key("deploy")]);
    let counter = "leasehold:fence:0:{deploy}:deploy";
    assert_eq!(server.command(&["EXISTS", counter]), Reply::Integer(1));
    store
        .leave_queue(&key("deploy"), waits.owner)
        .await
        .unwrap();
    assert_eq!(store.forget(&[key("deploy")]).await.unwrap(), []);
    // Whatever is left of a lock says that it is in use.
    for kind in ["readers", "queue", "offered", "slots"] {
        let record = format!("leasehold:{kind}:{{deploy}}:deploy");
        server.command(&["HSET", &record, "a", "1"]);
        let in_use = store.forget(&[key("deploy")]).await.unwrap();
        assert_eq!(in_use, [key("deploy")], "{kind}");
        server.command(&["DEL", &record]);
    }
}

/// Such a gap is remembered for half a minute, and over much sooner.
#[tokio::test]
async fn a_gap_for_clients_that_poll_keeps_the_counter_until_it_is_over() {
    let server = RedisServer::start();
    let store = member(&server);
    let (held, waits) = held_and_waited_for(&store).await;
    let gap = Departure::LeaveFree(Duration::from_secs(20));
    store.depart(&held, &gap).await.unwrap();
    store
        .leave_queue(&key("deploy"), waits.owner)
        .await
        .unwrap();
    let offered = "leasehold:offered:{deploy}:deploy";
    assert_eq!(server.command(&["EXISTS", offered]), Reply::Integer(1));
    let in_use = store.forget(&[key("deploy")]).await.unwrap();
    assert_eq!(in_use, [key("deploy")], "the gap");

    server.command(&["ZADD", offered, "1", "gap"]);
    assert_eq!(store.forget(&[key("deploy")]).await.unwrap(), []);
    assert_eq!(server.command(&["EXISTS", offered]), Reply::Integer(0));
}

#[tokio::test]
async fn a_lock_of_another_library_is_left_alone() {
    let server = RedisServer::start();
    server.command(&["HSET", "theirs", "owner", "1"]);
    let store = member(&server);
    let in_use = store.forget(&[key("theirs")]).await.unwrap();
    assert_eq!(in_use, [key("theirs")]);
    assert!(store.holders(&key("theirs")).await.is_ok());
}
