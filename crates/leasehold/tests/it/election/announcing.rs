//! Announcements that fail or are delayed: who then leads, how long the client tries, and what it
//! reports.

use std::time::Duration;

use leasehold::election::{LeaderChange, Leadership};
use leasehold::store::background;
use leasehold::{Client, Effect, Error, ErrorKind, Guard, LostReason};
use leasehold_testkit::{CrashInjector, Fault, FaultyStore};
use tokio::task::JoinHandle;

use super::leading::election;
use crate::fixture::{Fixture, MARGIN, TTL, client};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the leader's value, as a client sees it that has seen nothing before.
async fn leader(client: &Client) -> String {
    let leader = election(client, "").leader().await.expect("an answer");
    leader.map_or_else(|| "nobody".into(), |leader| leader.value)
}

#[tokio::test(start_paused = true)]
async fn lost_guard_ends_the_announcement_in_time() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let began = fixture.now();
    let error = election(&fixture.client, "a")
        .announce(guard)
        .await
        .unwrap_err();
    assert!(error.is_lost(), "{error}");
    let took = fixture.now().since(began);
    assert!(took < TTL - MARGIN + SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn superseded_leader_is_lost_at_its_next_publish() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let first = election(&fixture.client, "a").campaign().await.unwrap();
    fixture.pass(SECOND).await;
    fixture.memory.forget_everything();
    let next = election(&other, "b").campaign().await.unwrap();
    assert!(next.fence() > first.fence());
    // It learns of nothing before its next renewal.
    assert!(first.is_valid());
    let error = first.publish("late").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Lost, Effect::None)
    );
    assert_eq!(leader(&other).await, "b");
}

#[tokio::test(start_paused = true)]
async fn lost_leader_publishes_nothing() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let before = other.record("x").read().await.unwrap();
    leadership.guard().give_up();
    let error = leadership.publish("late").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Lost, Effect::None)
    );
    let _ = leadership.resign().await;
    let after = other.record("x").read().await.unwrap();
    assert_eq!(
        after.written.unwrap().version,
        before.written.unwrap().version
    );
}

#[tokio::test(start_paused = true)]
async fn body_that_ends_with_the_leadership_fails() {
    let fixture = Fixture::new();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    // At the next look it is over: nothing waits in between.
    let led = leadership.run(async |it| it.guard().give_up()).await;
    assert_eq!(led.unwrap_err().lost_reason(), Some(LostReason::GivenUp));
}

#[tokio::test(start_paused = true)]
async fn what_was_published_is_what_is_repeated() {
    let fixture = Fixture::new();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let leading = leadership.run(async |leadership| {
        leadership.publish("b").await?;
        fixture.pass(200 * SECOND).await;
        Ok::<_, Error>(leader(&fixture.client).await)
    });
    assert_eq!(leading.await.unwrap().unwrap(), "b");
}

/// Returns a campaign of at most ten seconds that lost the lock before it was announced, and the next
/// leader.
async fn followed_unannounced(
    fixture: &Fixture,
) -> (JoinHandle<Result<Leadership, Error>>, Leadership) {
    let (other, _) = fixture.client_apart();
    fixture.store.set(Fault::Slow(Duration::from_millis(300)));
    let campaign = election(&fixture.client, "a").wait(10 * SECOND).campaign();
    let campaign = background::spawn(campaign);
    // It holds the lock and looks at the record. Then the store forgets everything, and it writes too
    // late.
    fixture.pass(Duration::from_millis(450)).await;
    assert!(!other.holders("x").await.expect("an answer").is_empty());
    fixture.memory.forget_everything();
    let next = election(&other, "b")
        .campaign()
        .await
        .expect("a leadership");
    fixture.store.set(Fault::None);
    fixture.pass(SECOND).await;
    assert_eq!(leader(&other).await, "b");
    (campaign, next)
}

#[tokio::test(start_paused = true)]
async fn superseded_candidate_campaigns_again() {
    let fixture = Fixture::new();
    let (campaign, next) = followed_unannounced(&fixture).await;
    next.resign().await.unwrap();
    let leadership = campaign.await.unwrap().unwrap();
    assert_eq!(leader(&fixture.client).await, "a");
    drop(leadership);
}

#[tokio::test(start_paused = true)]
async fn repeated_campaign_waits_the_remaining_time() {
    let fixture = Fixture::new();
    let began = fixture.now();
    let (campaign, next) = followed_unannounced(&fixture).await;
    assert!(campaign.await.unwrap().unwrap_err().is_busy());
    let took = fixture.now().since(began);
    assert!(took < 10 * SECOND + SECOND / 2, "{took:?}");
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn silent_store_delays_resignation_one_second() {
    let fixture = Fixture::new();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let guard = fixture.client.lock("y").ttl(TTL).acquire().await.unwrap();
    fixture.store.set(Fault::Frozen);
    let began = fixture.now();
    // A release takes as long as it takes.
    let _ = guard.release().await;
    let released = fixture.now().since(began);
    let _ = leadership.resign().await;
    let resigned = fixture.now().since(began) - released;
    assert!(
        resigned <= released + SECOND,
        "{resigned:?} after {released:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn read_during_a_handover_finds_the_new_leader() {
    let fixture = Fixture::new();
    let (observer, network) = fixture.client_apart();
    let first = election(&fixture.client, "a").campaign().await.unwrap();
    network.set(Fault::Slow(3 * SECOND));
    let looking = background::spawn(async move { leader(&observer).await });
    // It learned who holds the lock, and then reads the record of the next leader.
    fixture.pass(SECOND).await;
    first.resign().await.unwrap();
    let next = election(&fixture.client, "b").campaign().await.unwrap();
    assert_eq!(looking.await.unwrap(), "b");
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn missing_leader_is_read_again_soon() {
    let fixture = Fixture::new();
    let (observer, _) = fixture.client_apart();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let pause = 60 * SECOND;
    let mut watch = observer
        .election("x")
        .poll_interval(pause)
        .observe()
        .unwrap();
    assert!(matches!(watch.next().await, Some(LeaderChange::Leads(_))));
    let began = fixture.now();
    leadership.resign().await.unwrap();
    assert!(matches!(watch.next().await, Some(LeaderChange::Nobody)));
    let took = fixture.now().since(began);
    assert!(took < pause + pause / 10 + SECOND, "{took:?}");
}

/// A leader, and behind it a waiter of the same client.
async fn followed_within_its_client(fixture: &Fixture) -> (Leadership, JoinHandle<Guard>) {
    let lock = fixture.client.lock("x").ttl(TTL);
    let first = lock.acquire().await.expect("free");
    let campaign = background::spawn(election(&fixture.client, "a").campaign());
    fixture.settle().await;
    let next = background::spawn(async move { lock.acquire().await.expect("its turn") });
    fixture.settle().await;
    first.release().await.expect("an answer");
    let leadership = campaign.await.expect("it ends").expect("a leadership");
    fixture.settle().await;
    (leadership, next)
}

#[tokio::test(start_paused = true)]
async fn dropped_leader_is_gone_before_the_next_announces() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let (leadership, next) = followed_within_its_client(&fixture).await;
    assert_eq!(leader(&other).await, "a");
    drop(leadership);
    let guard = next.await.unwrap();
    for _ in 0..4 {
        assert_eq!(leader(&other).await, "nobody");
        fixture.pass(TTL / 2).await;
    }
    assert!(guard.is_valid());
    let leadership = election(&fixture.client, "b")
        .announce(guard)
        .await
        .unwrap();
    assert_eq!(leader(&other).await, "b");
    drop(leadership);
}

/// A member that missed it could show the announcement again.
#[tokio::test(start_paused = true)]
async fn withdrawal_is_kept_longer_than_the_lease() {
    let fixture = Fixture::new();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    leadership.resign().await.unwrap();
    fixture.pass(2 * TTL).await;
    let reading = fixture.client.record("x").read().await.unwrap();
    assert!(reading.written.expect("a withdrawal").bytes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn observers_that_begin_together_do_not_look_together() {
    let fixture = Fixture::new();
    let seen = |_| {
        let election = fixture.client.election("x").poll_interval(60 * SECOND);
        let (mut watch, clock) = (election.observe().unwrap(), fixture.env.clock.clone());
        background::spawn(async move {
            assert!(matches!(watch.next().await, Some(LeaderChange::Nobody)));
            assert!(matches!(watch.next().await, Some(LeaderChange::Leads(_))));
            clock.now()
        })
    };
    let observers: Vec<_> = (0..4).map(seen).collect();
    fixture.settle().await;
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let mut instants = Vec::new();
    for observer in observers {
        instants.push(observer.await.unwrap());
    }
    instants.sort_unstable();
    instants.dedup();
    assert_eq!(instants.len(), 4, "{instants:?}");
    drop(leadership);
}

#[tokio::test(start_paused = true)]
async fn announcement_is_retried_until_the_store_answers() {
    let fixture = Fixture::new();
    // More requests than these are a storm.
    let fuse = CrashInjector::at(200, true);
    let way = FaultyStore::new(fixture.memory.clone());
    let way = way.with_fuse(fuse.clone());
    let stormy = client(way.clone(), &fixture.env);
    let guard = stormy.lock("x").ttl(TTL).acquire().await.unwrap();
    way.set(Fault::Unreachable);
    let candidate = election(&stormy, "a");
    let announced = background::spawn(async move { candidate.announce(guard).await });
    fixture.pass(5 * SECOND).await;
    assert!(!announced.is_finished(), "it goes on");
    way.set(Fault::None);
    let leadership = announced.await.unwrap().unwrap();
    assert!(!fuse.has_crashed(), "it asks without a pause");
    assert_eq!(leader(&fixture.client).await, "a");
    drop(leadership);
}

#[tokio::test(start_paused = true)]
async fn announcement_fails_after_one_ttl() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let began = fixture.now();
    let candidate = fixture.client.election("x").ttl(10 * SECOND);
    let error = candidate.announce(guard).await.unwrap_err();
    let took = fixture.now().since(began);
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    // It also waits a little for the release of the guard.
    assert!(took >= 10 * SECOND && took < 15 * SECOND, "{took:?}");
    fixture.store.set(Fault::None);
    fixture.pass(TTL).await;
    assert!(other.holders("x").await.unwrap().is_empty());
}
