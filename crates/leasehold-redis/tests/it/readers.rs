use std::time::Duration;

use leasehold::{LostReason, Member, Mode, Release, Renewal, Seal, Store};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{
    busy, claim, claim_for, eventually, granted, held, key, member, released, shared, value,
};

#[tokio::test]
async fn readers_share_and_keep_every_writer_out() {
    let server = RedisServer::start();
    let store = member(&server);
    let (one, two, writer) = (shared("doc"), shared("doc"), claim("doc"));
    let first = granted(&store, &one).await.fence;
    let second = granted(&store, &two).await.fence;
    assert!(second > first);
    assert!(granted(&store, &one).await.fence > second, "a resend");
    assert_eq!(busy(&store, &writer).await.holder, None);
    let foreign = server.command(&["SET", "doc", "token", "NX", "PX", "1000"]);
    assert_eq!(foreign, Reply::Nil);
    assert_eq!(store.holders(&key("doc")).await.unwrap().len(), 2);
    released(&store, &one).await;
    assert_eq!(store.release(&one).await.unwrap(), Release::WasLost);
    busy(&store, &writer).await;
    released(&store, &two).await;
    assert_eq!(value(&server, "doc"), Reply::Nil);
    assert!(granted(&store, &writer).await.fence > second);
    let answer = busy(&store, &shared("doc")).await;
    assert_eq!(answer.holder, Some(writer.owner));
}

#[tokio::test]
async fn a_reader_is_sealed_and_renewed_as_long_as_it_stands() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mine, other) = (shared("doc"), shared("doc"));
    let grant = granted(&store, &mine).await;
    assert_eq!(
        store.seal(&mine, grant.fence).await.unwrap().answer,
        Seal::Sealed
    );
    assert_eq!(
        store.seal(&other, grant.fence).await.unwrap().answer,
        Seal::NotHeld
    );
    let leases = [held(&mine, &grant), held(&other, &grant)];
    let answers = store.renew(&leases).await;
    // The key is another reader's for the one that is not among them.
    assert!(
        matches!(
            answers[..],
            [Renewal::Renewed, Renewal::Lost(LostReason::Taken)]
        ),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_reader_that_died_blocks_no_longer_than_its_own_ttl() {
    let server = RedisServer::start();
    let store = member(&server);
    let long = shared("doc");
    granted(&store, &long).await;
    let dies = claim_for("doc", Duration::from_millis(300)).with_mode(Mode::Shared);
    granted(&store, &dies).await;
    released(&store, &long).await;
    let before = leasehold::clock::Clock::now(&leasehold::clock::SystemClock);
    let writer = claim("doc");
    eventually("the writer gets in", async || {
        let attempt = store.acquire(&writer).await.unwrap();
        matches!(attempt, leasehold::Attempt::Granted(_)).then_some(())
    })
    .await;
    let waited = leasehold::clock::Clock::now(&leasehold::clock::SystemClock).since(before);
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    assert_eq!(store.release(&dies).await.unwrap(), Release::WasLost);
    assert_eq!(value(&server, "doc"), Reply::Bulk(writer.owner.to_string()));
}

#[tokio::test]
async fn the_longest_reader_keeps_writers_out_though_shorter_ones_come_and_go() {
    let server = RedisServer::start();
    let store = member(&server);
    let long = shared("doc");
    granted(&store, &long).await;
    let short = claim_for("doc", Duration::from_millis(100)).with_mode(Mode::Shared);
    let lease = held(&short, &granted(&store, &short).await);
    store.renew(&[lease]).await;
    let left = || match server.command(&["PTTL", "doc"]) {
        Reply::Integer(left) => left,
        other => panic!("{other:?}"),
    };
    assert!(left() > 30_000);
    store.release(&short).await.unwrap();
    assert!(left() > 30_000);
}

/// The sentinel was deleted by hand, a writer came and went, and new readers set it up again: the
/// reader of before must not come back to life among them.
#[tokio::test]
async fn a_reader_does_not_rise_again_after_a_writer() {
    let server = RedisServer::start();
    let store = member(&server);
    let old = shared("doc");
    let lease = held(&old, &granted(&store, &old).await);
    server.command(&["DEL", "doc"]);
    let answers = store.renew(std::slice::from_ref(&lease)).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Gone)]),
        "{answers:?}"
    );
    let writer = claim("doc");
    granted(&store, &writer).await;
    let answers = store.renew(std::slice::from_ref(&lease)).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Taken)]),
        "{answers:?}"
    );
    released(&store, &writer).await;
    let young = shared("doc");
    granted(&store, &young).await;
    let answers = store.renew(std::slice::from_ref(&lease)).await;
    assert!(matches!(answers[..], [Renewal::Lost(_)]), "{answers:?}");
    assert_eq!(store.release(&old).await.unwrap(), Release::WasLost);
    assert_eq!(
        value(&server, "doc"),
        Reply::Bulk("leasehold:shared".into())
    );
    released(&store, &young).await;
}
