//! Connections that break, servers that stand still, callers that go away.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{Claim, Effect, ErrorKind, Member, Release, Renewal, Store};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply, until};

use crate::proxy::{End, SlowNetwork, endless, parrot};
use crate::support::{
    claim, connections, eventually, freed, granted, held, member, next, refused, released, shared,
    unread, value,
};

/// Polls `future` at most `times` and drops it; whether it was done by then.
async fn polled_at_most(future: impl Future, times: usize) -> bool {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            // Without it the future would not be polled again before it could go on.
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn an_attempt_dropped_at_any_await_point_leaves_nothing_after_its_release() {
    for make in [claim, shared] {
        let server = RedisServer::start();
        let store = member(&server);
        for polls in 1.. {
            assert!(polls < 1000, "an attempt ends");
            let mine = make("deploy");
            let done = polled_at_most(store.acquire(&mine), polls).await;
            freed(&store, &mine).await;
            assert_eq!(value(&server, "deploy"), Reply::Nil, "{polls} polls");
            until("the old connection is gone", || connections(&server) <= 1);
            assert_eq!(value(&server, "deploy"), Reply::Nil, "{polls} polls");
            if done && polls > 3 {
                break;
            }
        }
    }
}

#[tokio::test]
async fn an_attempt_dropped_after_its_first_steps_on_a_standing_connection_leaves_nothing() {
    let server = RedisServer::start();
    let store = member(&server);
    for polls in 1..=3 {
        store.presence().await.unwrap();
        let mine = claim("deploy");
        polled_at_most(store.acquire(&mine), polls).await;
        freed(&store, &mine).await;
        until("the old connection is gone", || connections(&server) <= 1);
        assert_eq!(value(&server, "deploy"), Reply::Nil, "{polls} polls");
    }
}

/// Makes an attempt at a server that stands still, and drops it once its bytes have arrived there.
async fn attempt_dropped_in_the_ice(server: &RedisServer, store: &RedisMember, claim: &Claim) {
    store.presence().await.unwrap();
    server.freeze();
    let mut attempt = store.acquire(claim);
    eventually("the attempt arrives", async || {
        let soon = SystemClock.now() + Duration::from_millis(5);
        let answer = within(&SystemClock, soon, &mut attempt).await;
        assert!(answer.is_none(), "a frozen server answered");
        (unread(server.port()) > 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_attempt_dropped_at_a_frozen_server_leaves_nothing_after_its_release() {
    for make in [claim, shared] {
        let server = RedisServer::start();
        let store = member(&server);
        let mine = make("deploy");
        attempt_dropped_in_the_ice(&server, &store, &mine).await;
        server.thaw();
        freed(&store, &mine).await;
        until("the old connection is gone", || connections(&server) <= 1);
        assert_eq!(value(&server, "deploy"), Reply::Nil);
    }
}

#[tokio::test]
async fn an_attempt_that_arrives_after_its_release_finds_its_connection_closed() {
    let server = RedisServer::start();
    let mut network = SlowNetwork::to(server.port()).await;
    let store = RedisMember::new(format!("redis://127.0.0.1:{}", network.port)).unwrap();
    store.presence().await.unwrap();
    network.hold();
    let mine = claim("deploy");
    {
        let mut attempt = store.acquire(&mine);
        eventually("the attempt is on its way", async || {
            let soon = SystemClock.now() + Duration::from_millis(5);
            let answer = within(&SystemClock, soon, &mut attempt).await;
            assert!(
                answer.is_none(),
                "an attempt was answered that never arrived"
            );
            (network.held() > 0).then_some(())
        })
        .await;
    }
    assert_eq!(freed(&store, &mine).await, Release::WasLost);
    assert_eq!(network.deliver().await, End::Aborted);
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}

#[tokio::test]
async fn releases_sent_before_the_thaw_do_not_overtake_their_attempts() {
    let server = RedisServer::builder().unix().start();
    let store = RedisMember::new(format!("unix://{}", server.socket().display())).unwrap();
    let claims: Vec<Claim> = (0..200)
        .map(|number| claim(&format!("lock {number}")))
        .collect();
    // The server knows the script by now, so that nothing delays the releases.
    store.release(&claims[0]).await.unwrap();
    server.freeze();
    {
        let attempts = claims.iter().map(|claim| store.acquire(claim));
        let attempts = futures_util::future::join_all(attempts);
        // However much gets out within this time, the test must hold.
        let soon = SystemClock.now() + Duration::from_millis(100);
        assert!(within(&SystemClock, soon, attempts).await.is_none());
    }
    let releases = claims.iter().map(|claim| freed(&store, claim));
    let mut releases = pin!(futures_util::future::join_all(releases));
    let soon = SystemClock.now() + Duration::from_millis(50);
    assert!(within(&SystemClock, soon, &mut releases).await.is_none());
    server.thaw();
    releases.await;
    until("the old connection is gone", || connections(&server) <= 1);
    for claim in &claims {
        assert_eq!(value(&server, claim.key.as_str()), Reply::Nil);
    }
}

#[tokio::test]
async fn requests_of_others_on_an_aborted_connection_are_unknown() {
    let server = RedisServer::start();
    let store = member(&server);
    let kept = claim("kept");
    let lease = [held(&kept, &granted(&store, &kept).await)];
    server.freeze();
    let mut renewal = store.renew(&lease);
    let soon = SystemClock.now() + Duration::from_millis(20);
    assert!(within(&SystemClock, soon, &mut renewal).await.is_none());
    polled_at_most(store.acquire(&claim("deploy")), 1).await;
    let end = SystemClock.now() + LIMIT;
    let answers = within(&SystemClock, end, renewal).await.unwrap();
    let [Renewal::Unknown(error)] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unreachable, Effect::Unknown)
    );
    server.thaw();
    released(&store, &kept).await;
}

#[tokio::test]
async fn many_callers_share_one_connection() {
    let server = RedisServer::start();
    let store = member(&server);
    let claims: Vec<Claim> = (0..100)
        .map(|number| claim(&format!("lock {number}")))
        .collect();
    let all = claims.iter().map(|claim| granted(&store, claim));
    futures_util::future::join_all(all).await;
    assert_eq!(connections(&server), 1);
    drop(store);
    let nobody = "the connection ends with the member";
    eventually(nobody, async || (connections(&server) == 0).then_some(())).await;
}

#[tokio::test]
async fn a_dead_server_is_unreachable_until_it_is_back() {
    let mut server = RedisServer::start();
    let store = member(&server);
    let mine = claim("deploy");
    let lease = [held(&mine, &granted(&store, &mine).await)];
    server.kill();
    eventually("the connection is refused", async || {
        let error = refused(&store, &claim("other")).await;
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        (error.effect() == Effect::None).then_some(())
    })
    .await;
    assert!(matches!(
        store.renew(&lease).await[..],
        [Renewal::Unknown(_)]
    ));
    let error = store.release(&mine).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    server.restart();
    assert_eq!(freed(&store, &mine).await, Release::WasLost);
    granted(&store, &claim("deploy")).await;
}

#[tokio::test]
async fn scripts_come_back_after_the_server_forgot_them() {
    let server = RedisServer::start();
    let store = member(&server);
    let flush = || server.command(&["SCRIPT", "FLUSH"]);
    for mine in [claim("deploy"), shared("deploy")] {
        flush();
        let grant = granted(&store, &mine).await;
        flush();
        let answers = store.renew(&[held(&mine, &grant)]).await;
        assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
        flush();
        assert_eq!(
            store.seal(&mine, next(&grant)).await.unwrap().answer,
            leasehold::Seal::Sealed
        );
        flush();
        released(&store, &mine).await;
    }
}

#[tokio::test]
async fn garbage_is_named_as_such() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
        b":seven\r\n",
        b"\0\0\0\0\r\n",
    ] {
        let port = parrot(answer).await;
        let store = RedisMember::new(format!("redis://127.0.0.1:{port}")).unwrap();
        let error = refused(&store, &claim("deploy")).await;
        assert_eq!(error.kind(), ErrorKind::Garbled, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn endless_reply_costs_only_its_own_connection() {
    let server = RedisServer::start();
    let other = member(&server);
    let mine = claim("deploy");
    let lease = [held(&mine, &granted(&other, &mine).await)];
    let (port, ended) = endless().await;
    let store = RedisMember::new(format!("redis://127.0.0.1:{port}")).unwrap();
    let error = refused(&store, &claim("deploy")).await;
    assert_eq!(error.kind(), ErrorKind::Garbled, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("127.0.0.1:{port}: ")), "{text}");
    assert!(text.contains("the limit is 8388608 bytes"), "{text}");
    let end = SystemClock.now() + LIMIT;
    within(&SystemClock, end, ended).await.unwrap().unwrap();
    let answers = other.renew(&lease).await;
    assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
}
