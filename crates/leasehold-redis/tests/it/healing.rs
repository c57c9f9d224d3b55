//! Leases that are put back.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{Effect, ErrorKind, Fence, Held, Member, Release};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply, until};

use crate::proxy::{End, SlowNetwork};
use crate::support::{claim, connections, eventually, freed, member, unread, value};

fn lease(name: &str) -> Held {
    let claim = claim(name);
    let fence = Fence::new(claim.proposal.as_micros() + 1_000_000).unwrap();
    Held {
        claim: claim.into(),
        fence,
    }
}

#[tokio::test]
async fn a_healed_lease_has_its_whole_ttl_and_its_counter_an_end() {
    let server = RedisServer::start();
    let store = member(&server);
    let healed = lease("deploy");
    store.heal(std::slice::from_ref(&healed)).await.unwrap();
    let owner = healed.claim.owner.to_string();
    assert_eq!(value(&server, "deploy"), Reply::Bulk(owner));
    let fence = "leasehold:fence:0:{deploy}:deploy";
    assert_eq!(
        server.command(&["ZSCORE", fence, "f"]),
        Reply::Bulk(healed.fence.to_string())
    );
    for (key, at_most) in [("deploy", 60_000), (fence, 7 * 24 * 3_600_000)] {
        let left = server.command(&["PTTL", key]);
        assert!(
            matches!(left, Reply::Integer(left) if left > at_most / 2 && left <= at_most),
            "{key}: {left:?}"
        );
    }
}

#[tokio::test]
async fn a_lease_whose_counter_is_damaged_is_not_put_back_and_harms_no_other() {
    let server = RedisServer::start();
    let store = member(&server);
    server.command(&["SET", "leasehold:fence:0:{b}:b", "text"]);
    server.command(&["HSET", "c", "another", "library"]);
    let leases = ["a", "b", "c", "d"].map(lease);
    let error = store.heal(&leases).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(value(&server, "b"), Reply::Nil);
    assert_eq!(server.command(&["TYPE", "c"]), Reply::Status("hash".into()));
    for index in [0, 3] {
        let Held { claim, .. } = &leases[index];
        let owner = Reply::Bulk(claim.owner.to_string());
        assert_eq!(value(&server, claim.key.as_str()), owner);
    }
}

#[tokio::test]
async fn a_healing_dropped_at_a_frozen_server_leaves_nothing_after_its_release() {
    let server = RedisServer::start();
    let store = member(&server);
    // The server knows the script by then, so that the first message could do it.
    store.heal(&[lease("other")]).await.unwrap();
    let healed = [lease("deploy")];
    server.freeze();
    {
        let mut healing = store.heal(&healed);
        eventually("the healing arrives", async || {
            let soon = SystemClock.now() + Duration::from_millis(5);
            let answer = within(&SystemClock, soon, &mut healing).await;
            assert!(answer.is_none(), "a frozen server answered");
            (unread(server.port()) > 0).then_some(())
        })
        .await;
    }
    server.thaw();
    let release = freed(&store, &healed[0].claim).await;
    assert!(matches!(release, Release::Released | Release::WasLost));
    until("the old connection is gone", || connections(&server) <= 1);
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}

#[tokio::test]
async fn a_healing_that_arrives_after_its_release_finds_its_connection_closed() {
    let server = RedisServer::start();
    let mut network = SlowNetwork::to(server.port()).await;
    let store = RedisMember::new(format!("redis://127.0.0.1:{}", network.port)).unwrap();
    store.heal(&[lease("other")]).await.unwrap();
    network.hold();
    let healed = [lease("deploy")];
    {
        let mut healing = store.heal(&healed);
        eventually("the healing is on its way", async || {
            let soon = SystemClock.now() + Duration::from_millis(5);
            let answer = within(&SystemClock, soon, &mut healing).await;
            assert!(
                answer.is_none(),
                "a healing was answered that never arrived"
            );
            (network.held() > 0).then_some(())
        })
        .await;
    }
    assert_eq!(freed(&store, &healed[0].claim).await, Release::WasLost);
    assert_eq!(network.deliver().await, End::Aborted);
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}
