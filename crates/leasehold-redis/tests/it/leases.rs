use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, WallTime};
use leasehold::{Attempt, ErrorKind, Fence, LostReason, Member, Release, Renewal, Seal, Store};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{
    busy, claim, eventually, granted, held, member, one_of, queued, refused, released, shared,
    value,
};

#[tokio::test]
async fn one_owner_holds_and_the_next_gets_it_after_the_release() {
    let server = RedisServer::start();
    let store = member(&server);
    let (first, second) = (claim("deploy"), claim("deploy"));
    let grant = granted(&store, &first).await;
    assert!(grant.fence.get() > first.proposal.as_micros());
    let wall = SystemClock.wall();
    assert!(grant.sample.unwrap().clock.distance(wall) < Duration::from_secs(60));
    let answer = busy(&store, &second).await;
    assert_eq!(answer.holder, Some(first.owner));
    assert!(answer.sample.is_some());
    assert_eq!(store.release(&second).await.unwrap(), Release::WasLost);
    busy(&store, &second).await;
    released(&store, &first).await;
    assert_eq!(store.release(&first).await.unwrap(), Release::WasLost);
    assert!(granted(&store, &second).await.fence > grant.fence);
}

#[tokio::test]
async fn a_resend_is_granted_again_with_a_greater_fence() {
    let server = RedisServer::start();
    let store = member(&server);
    let mine = claim("deploy");
    let first = granted(&store, &mine).await;
    assert!(granted(&store, &mine).await.fence > first.fence);
    released(&store, &mine).await;
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}

#[tokio::test]
async fn fences_grow_though_the_server_forgot_everything() {
    let mut server = RedisServer::start();
    let store = member(&server);
    let before = granted(&store, &claim("deploy")).await.fence;
    server.restart();
    assert_eq!(value(&server, "deploy"), Reply::Nil);
    let after = eventually("a grant after the restart", async || {
        let again = claim("deploy");
        match store.acquire(&again).await {
            Ok(Attempt::Granted(grant)) => Some(grant.fence),
            _ => None,
        }
    });
    assert!(after.await > before);
}

#[tokio::test]
async fn a_wall_clock_that_stands_in_the_past_does_not_lower_the_fence() {
    let server = RedisServer::start();
    let store = member(&server);
    let first = claim("deploy");
    let fence = granted(&store, &first).await.fence;
    released(&store, &first).await;
    let mut late = claim("deploy");
    let hour = 60 * 60 * 1_000_000;
    late.proposal = WallTime::from_micros(late.proposal.as_micros() - hour);
    assert_eq!(granted(&store, &late).await.fence.get(), fence.get() + 1);
}

#[tokio::test]
async fn a_proposal_that_no_fence_can_hold_is_refused_before_anything_is_sent() {
    let server = RedisServer::start();
    let mut far = claim("deploy");
    far.proposal = WallTime::from_micros(Fence::MAX.get());
    let error = refused(&member(&server), &far).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("at most 9007199254740991"),
        "{error}"
    );
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
}

#[tokio::test]
async fn seal_raises_the_counter_for_the_holder_alone() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mine, other) = (claim("deploy"), claim("deploy"));
    let fence = granted(&store, &mine).await.fence;
    let far = Fence::new(fence.get() + 1_000_000).unwrap();
    assert_eq!(store.seal(&other, far).await.unwrap().answer, Seal::NotHeld);
    assert_eq!(store.seal(&mine, far).await.unwrap().answer, Seal::Sealed);
    assert_eq!(store.seal(&mine, fence).await.unwrap().answer, Seal::Sealed);
    released(&store, &mine).await;
    assert_eq!(store.seal(&mine, far).await.unwrap().answer, Seal::NotHeld);
    assert!(granted(&store, &other).await.fence > far);
}

#[tokio::test]
async fn each_lease_of_a_batch_is_answered_on_its_own() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut leases = Vec::new();
    for number in 0..150 {
        let claim = claim(&format!("lease {number}"));
        leases.push(held(&claim, &granted(&store, &claim).await));
    }
    server.command(&["DEL", "lease 3"]);
    server.command(&["SET", "lease 70", "somebody else"]);
    server.command(&["DEL", "lease 100"]);
    server.command(&["HSET", "lease 100", "a", "hash"]);
    server.command(&["DEL", "leasehold:fence:0:{lease 149}:lease 149"]);
    let answers = store.renew(&leases).await;
    assert_eq!(answers.len(), 150);
    for (number, answer) in answers.iter().enumerate() {
        let expected = match number {
            3 => matches!(answer, Renewal::Lost(LostReason::Gone)),
            70 | 100 => matches!(answer, Renewal::Lost(LostReason::Taken)),
            _ => matches!(answer, Renewal::Renewed),
        };
        assert!(expected, "lease {number}: {answer:?}");
    }
    assert_eq!(value(&server, "lease 3"), Reply::Nil);
    assert!(store.renew(&[]).await.is_empty());
}

#[tokio::test]
async fn renewing_never_shortens_a_lease() {
    let server = RedisServer::start();
    let store = member(&server);
    let mine = claim("deploy");
    let lease = held(&mine, &granted(&store, &mine).await);
    server.command(&["PEXPIRE", "deploy", "600000"]);
    store.renew(&[lease]).await;
    assert!(matches!(server.command(&["PTTL", "deploy"]),
        Reply::Integer(left) if left > 500_000));
}

#[tokio::test]
async fn a_lock_of_another_type_is_named() {
    let server = RedisServer::start();
    let store = member(&server);
    server.command(&["HSET", "deploy", "uuid:1", "1"]);
    for claim in [claim("deploy"), shared("deploy")] {
        let error = refused(&store, &claim).await;
        assert_eq!(error.kind(), ErrorKind::ForeignLock);
        let text = error.to_string();
        assert!(
            text.contains("a hash") && text.contains("?prefix="),
            "{text}"
        );
        assert_eq!(store.release(&claim).await.unwrap(), Release::WasLost);
    }
    assert_eq!(
        server.command(&["TYPE", "deploy"]),
        Reply::Status("hash".into())
    );
}

#[tokio::test]
async fn a_damaged_counter_is_corrupt_and_leaves_nothing_held() {
    let server = RedisServer::start();
    let store = member(&server);
    server.command(&["SET", "leasehold:fence:0:{deploy}:deploy", "text"]);
    for mine in [claim("deploy"), shared("deploy")] {
        let error = refused(&store, &mine).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(error.effect(), leasehold::Effect::Unknown);
        store.release(&mine).await.unwrap();
        assert_eq!(value(&server, "deploy"), Reply::Nil);
    }
}

#[tokio::test]
async fn after_a_release_nothing_stays_for_ever() {
    let server = RedisServer::start();
    let store = member(&server);
    for mine in [claim("deploy"), shared("deploy")] {
        granted(&store, &mine).await;
        released(&store, &mine).await;
    }
    let Reply::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("KEYS")
    };
    assert_eq!(keys.len(), 2, "the counter and the client: {keys:?}");
    for key in keys {
        let Reply::Bulk(key) = key else {
            panic!("{key:?}")
        };
        let left = server.command(&["PTTL", &key]);
        assert!(
            matches!(left, Reply::Integer(left) if left > 0),
            "{key}: {left:?}"
        );
    }
}

#[tokio::test]
async fn neither_a_crash_nor_a_refusal_leaves_a_counter_for_ever() {
    let server = RedisServer::start();
    let store = member(&server);
    server.command(&["SET", "foreign", "token"]);
    busy(&store, &claim("foreign")).await;
    granted(&store, &claim("crashed")).await;
    granted(&store, &shared("reader")).await;
    granted(&store, &one_of("permit", 2)).await;
    let waiter = claim("waiter");
    let attempt = store.acquire_in_turn(&waiter, &queued(&waiter)).await;
    assert!(matches!(attempt, Ok(Attempt::Granted(_))));
    for name in ["foreign", "crashed", "reader", "permit", "waiter"] {
        let fence = format!("leasehold:fence:0:{{{name}}}:{name}");
        let left = server.command(&["PTTL", &fence]);
        assert!(
            matches!(left, Reply::Integer(left) if left > 0),
            "{name}: {left:?}"
        );
    }
}

/// As where an attempt never arrived, and its release did.
#[tokio::test]
async fn a_release_before_the_first_grant_leaves_no_counter_for_ever() {
    let server = RedisServer::start();
    let store = member(&server);
    let lost = claim("deploy");
    assert_eq!(store.release(&lost).await.unwrap(), Release::WasLost);
    let mine = claim("deploy");
    granted(&store, &mine).await;
    let left = server.command(&["PTTL", "leasehold:fence:0:{deploy}:deploy"]);
    assert!(matches!(left, Reply::Integer(left) if left > 0), "{left:?}");
}

/// Its rest time is not set again at each use. A server whose data vanish shows another mark.
#[tokio::test]
async fn a_counter_that_is_lost_with_the_card_is_given_its_rest_again() {
    let server = RedisServer::start();
    let store = member(&server);
    let edit = crate::support::card_edit(&store.presence().await.unwrap(), "a");
    assert!(store.write_card(&edit).await.unwrap());
    let mine = claim("deploy");
    granted(&store, &mine).await;
    released(&store, &mine).await;
    server.command(&["FLUSHALL"]);
    let mine = claim("deploy");
    granted(&store, &mine).await;
    released(&store, &mine).await;
    let left = server.command(&["PTTL", "leasehold:fence:0:{deploy}:deploy"]);
    assert!(matches!(left, Reply::Integer(left) if left > 0), "{left:?}");
}

#[tokio::test]
async fn prefix_and_hash_tag_lead_to_the_right_keys() {
    let server = RedisServer::start();
    let url = format!("{}?prefix=app:", server.url());
    let store = leasehold_redis::RedisMember::new(url).unwrap();
    let mine = claim("{user7}/cart");
    granted(&store, &mine).await;
    assert_eq!(
        value(&server, "app:{user7}/cart"),
        Reply::Bulk(mine.owner.to_string())
    );
    let fence = "leasehold:fence:0:{user7}:app:{user7}/cart";
    assert_eq!(
        server.command(&["TYPE", fence]),
        Reply::Status("zset".into())
    );
    released(&store, &mine).await;
}

#[tokio::test]
async fn a_lock_that_an_operator_broke_is_lost_and_busy_until_it_ends() {
    let server = RedisServer::start();
    let store = member(&server);
    for mine in [claim("deploy"), shared("deploy")] {
        let lease = held(&mine, &granted(&store, &mine).await);
        let tombstone = format!("leasehold:broken:{}", mine.owner);
        server.command(&["SET", "deploy", &tombstone]);
        let answers = store.renew(&[lease]).await;
        assert!(
            matches!(answers[..], [Renewal::Lost(LostReason::Broken)]),
            "{answers:?}"
        );
        for other in [claim("deploy"), shared("deploy")] {
            assert_eq!(busy(&store, &other).await.holder, None);
        }
        assert_eq!(store.release(&mine).await.unwrap(), Release::WasLost);
        assert_eq!(value(&server, "deploy"), Reply::Bulk(tombstone));
        server.command(&["DEL", "deploy"]);
    }
}
