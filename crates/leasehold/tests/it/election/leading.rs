//! Elections under virtual time: who leads, for how long, and what observers learn.

use std::future::pending;
use std::time::Duration;

use futures_util::StreamExt;
use leasehold::election::{Election, LeaderChange, LeaderWatch};
use leasehold::memory::MemoryStore;
use leasehold::store::background;
use leasehold::{Client, Error, ErrorKind, Fence, LostReason, Mode, ReleaseOutcome};
use leasehold_testkit::Fault;

use crate::fixture::{Fixture, MARGIN, TTL, is_free};

pub(crate) fn election(client: &Client, value: &str) -> Election {
    client.election("x").ttl(TTL).value(value)
}

fn watch(client: &Client) -> LeaderWatch {
    client.election("x").observe().expect("a watch")
}

/// Returns the next change as one word: the leader's value, `nobody`, or the reason why it is
/// unknown.
async fn next_leader(watch: &mut LeaderWatch) -> String {
    match watch.next().await.expect("a change") {
        LeaderChange::Leads(leader) => leader.value,
        LeaderChange::Nobody => "nobody".into(),
        LeaderChange::Unknown(error) => format!("{:?}", error.kind()),
        other => panic!("{other:?}"),
    }
}

/// Returns whether no change is reported during `span`.
async fn silent(fixture: &Fixture, watch: &mut LeaderWatch, span: Duration) -> bool {
    tokio::select! {
        biased;
        _ = watch.next() => false,
        () = fixture.pass(span) => true,
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_candidate_succeeds_with_a_greater_fence() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let first = election(&fixture.client, "a").campaign().await.unwrap();
    let next = background::spawn(election(&other, "b").campaign());
    fixture.pass(2 * TTL).await;
    assert!(
        first.is_valid() && !next.is_finished(),
        "as long as it likes"
    );
    let fence = first.fence();
    assert_eq!(first.resign().await.unwrap(), ReleaseOutcome::Released);
    let next = next.await.unwrap().unwrap();
    assert!(next.fence() > fence);
    let leader = election(&fixture.client, "")
        .leader()
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&*leader.value, leader.fence), ("b", next.fence()));
    assert_eq!(leader.owner, next.guard().owner());
    assert_eq!(
        leader.client.expect("it said who it is").pid,
        std::process::id()
    );
}

#[tokio::test(start_paused = true)]
async fn delayed_publish_changes_nothing() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let first = election(&fixture.client, "a").campaign().await.unwrap();
    fixture.store.set(Fault::Frozen);
    // It leads when it sends this, but no longer when its servers get it.
    let error = first.publish("late").await.unwrap_err();
    assert_eq!(error.effect(), leasehold::Effect::Unknown, "{error}");
    assert_eq!(first.lost().await, LostReason::Unreachable);
    let next = election(&other, "b").campaign().await.unwrap();
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_secs(5)).await;
    let leader = election(&other, "").leader().await.unwrap().unwrap();
    assert_eq!((&*leader.value, leader.fence), ("b", next.fence()));
}

/// On a runtime of several threads.
pub(crate) fn can_be_spawned<F: Future + Send>(future: F) -> F {
    future
}

#[tokio::test(start_paused = true)]
async fn leader_resigns_after_its_body() {
    let fixture = Fixture::new();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let observer = election(&fixture.client, "");
    let output = leadership.run(async |leadership| {
        leadership.publish("b").await?;
        let leader = observer.leader().await?.expect("a leader");
        assert_eq!(leader.value, "b");
        Ok::<_, Error>(42)
    });
    assert_eq!(can_be_spawned(output).await.unwrap().unwrap(), 42);
    assert!(observer.leader().await.unwrap().is_none());
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn observers_see_only_changes_in_order() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let mut watch = watch(&other);
    assert_eq!(next_leader(&mut watch).await, "nobody");
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    assert_eq!(next_leader(&mut watch).await, "a");
    assert!(silent(&fixture, &mut watch, Duration::from_secs(90)).await);
    leadership.publish("a2").await.unwrap();
    assert_eq!(next_leader(&mut watch).await, "a2");
    leadership.resign().await.unwrap();
    assert_eq!(next_leader(&mut watch).await, "nobody");
    let leadership = election(&fixture.client, "a2").campaign().await.unwrap();
    // The same value of another leader.
    assert_eq!(next_leader(&mut watch).await, "a2");
    drop(leadership);
    assert_eq!(next_leader(&mut watch).await, "nobody");
}

#[tokio::test(start_paused = true)]
async fn watch_reports_a_change_within_its_pause() {
    let fixture = Fixture::new();
    let watching = fixture
        .client
        .election("x")
        .poll_interval(Duration::from_secs(10));
    let mut watch = watching.observe().unwrap();
    assert!(matches!(
        StreamExt::next(&mut watch).await,
        Some(LeaderChange::Nobody)
    ));
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let began = fixture.now();
    let seen = StreamExt::next(&mut watch).await;
    assert!(
        matches!(seen, Some(LeaderChange::Leads(leader)) if leader.fence == leadership.fence())
    );
    let after = fixture.now().since(began);
    let spread = Duration::from_secs(9)..=Duration::from_secs(11);
    assert!(spread.contains(&after), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn dead_leader_is_reported_until_its_lease_ends() {
    let fixture = Fixture::new();
    let (other, store) = fixture.client_apart();
    let leadership = election(&other, "a").campaign().await.unwrap();
    let mut watch = watch(&fixture.client);
    assert_eq!(next_leader(&mut watch).await, "a");
    store.set(Fault::Unreachable);
    let began = fixture.now();
    assert_eq!(next_leader(&mut watch).await, "nobody");
    let after = fixture.now().since(began);
    // Renewed a third of the TTL ago at most; two looks miss it.
    assert!(
        after > TTL / 2 && after < TTL + Duration::from_secs(3),
        "{after:?}"
    );
    assert!(!leadership.is_valid());
}

#[tokio::test(start_paused = true)]
async fn unannounced_holder_does_not_lead() {
    let fixture = Fixture::new();
    // This leader did not resign: its announcement is still there, and counts for no other leader.
    drop(election(&fixture.client, "a").campaign().await.unwrap());
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let reading = fixture.client.record("x").read().await.unwrap();
    assert!(reading.written.is_some());
    let mut watch = watch(&fixture.client);
    assert_eq!(next_leader(&mut watch).await, "nobody");
    let silent = election(&fixture.client, "b");
    assert!(silent.leader().await.unwrap().is_none());
    let leadership = silent.announce(guard.reenter()).await.unwrap();
    assert_eq!(leadership.fence(), guard.fence());
    assert_eq!(silent.leader().await.unwrap().unwrap().value, "b");
    assert_eq!(
        leadership.resign().await.unwrap(),
        ReleaseOutcome::StillHeld
    );
    assert!(
        silent.leader().await.unwrap().is_none(),
        "it took its word back"
    );
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn campaign_ends_with_its_wait() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let began = fixture.now();
    let campaign = election(&other, "b").wait(Duration::from_secs(7));
    assert!(campaign.campaign().await.unwrap_err().is_busy());
    assert!(fixture.now().since(began) < Duration::from_secs(8));
    // One that is dropped neither leads nor waits.
    tokio::select! {
        biased;
        led = election(&other, "c").campaign() => panic!("{led:?}"),
        () = fixture.pass(Duration::from_secs(2)) => {}
    }
    leadership.resign().await.unwrap();
    fixture.pass(Duration::from_secs(2)).await;
    assert!(other.holders("x").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_and_changes_nothing() {
    let fixture = Fixture::new();
    let election = || fixture.client.election("x");
    let refused = |error: Error, parts: &[&str]| {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    };
    let too_long = "v".repeat(Election::VALUE_MAX + 1);
    let error = election().value(&*too_long).campaign().await.unwrap_err();
    refused(error, &["\"x\"", "4097 bytes", "the maximum is 4096"]);
    let bounds = election().ttl(Duration::from_millis(99)).campaign().await;
    refused(bounds.unwrap_err(), &["99ms"]);
    for name in ["", "leasehold:x", "a\0b"] {
        let nameless = fixture.client.election(name);
        refused(nameless.campaign().await.unwrap_err(), &[]);
        refused(nameless.leader().await.unwrap_err(), &[]);
        refused(nameless.observe().unwrap_err(), &[]);
    }
    let often = election().poll_interval(Duration::from_millis(9)).observe();
    refused(often.unwrap_err(), &["9ms", "the minimum is 10ms"]);
    assert_eq!(fixture.store.calls().len(), 0, "nothing was asked");

    let longest = election().value(&too_long[1..]).campaign().await.unwrap();
    refused(longest.publish(too_long).await.unwrap_err(), &["4097"]);
    assert_eq!(
        election().leader().await.unwrap().unwrap().value.len(),
        4096
    );
    longest.resign().await.unwrap();

    let other = fixture.client.lock("y").acquire().await.unwrap();
    refused(
        election().announce(other).await.unwrap_err(),
        &["\"x\"", "\"y\""],
    );
    let shared = fixture
        .client
        .lock("x")
        .mode(Mode::Shared)
        .acquire()
        .await
        .unwrap();
    refused(election().announce(shared).await.unwrap_err(), &["shared"]);
}

#[tokio::test(start_paused = true)]
async fn foreign_record_is_left_alone() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let hour = Duration::from_secs(3600);
    guard
        .record()
        .write(*b"of another recipe", hour)
        .await
        .unwrap();
    guard.release().await.unwrap();
    let error = election(&fixture.client, "a").campaign().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let reading = fixture.client.record("x").read().await.unwrap();
    assert_eq!(&*reading.written.unwrap().bytes, b"of another recipe");
    assert!(fixture.client.holders("x").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn campaign_rejects_late_writes_of_earlier_holders() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let hour = Duration::from_secs(3600);
    let late = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    late.record()
        .write(*b"of another recipe", hour)
        .await
        .unwrap();
    late.give_up();
    let error = election(&other, "a").campaign().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    // Nothing was announced; and yet the look at the record is final for who came before.
    let error = late.record().write(*b"late", hour).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    let reading = other.record("x").read().await.unwrap();
    assert_eq!(&*reading.written.unwrap().bytes, b"of another recipe");
}

#[test]
fn without_async_it_is_the_same() {
    let locks = leasehold::blocking::Client::new(MemoryStore::new());
    let election = locks.election("x").value("a");
    let leadership = election.campaign().unwrap();
    let mut watch = election.observe().unwrap();
    let fence: Fence = leadership.fence();
    assert!(matches!(watch.next(), Some(LeaderChange::Leads(leader)) if leader.fence == fence));
    leadership.publish("b").unwrap();
    assert!(matches!(watch.next(), Some(LeaderChange::Leads(leader)) if leader.value == "b"));
    let led = leadership.run(|leadership| leadership.fence());
    assert_eq!(led.unwrap(), fence);
    assert!(matches!(watch.next(), Some(LeaderChange::Nobody)));
    assert!(election.leader().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn disconnected_leader_stops_before_the_next_leads() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let first = election(&fixture.client, "a").campaign().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let began = fixture.now();
    let next = background::spawn(election(&other, "b").campaign());
    let reason = tokio::select! {
        biased;
        reason = first.lost() => reason,
        () = fixture.pass(TTL) => panic!("it leads on"),
    };
    assert_eq!(reason, LostReason::Unreachable);
    assert!(fixture.now().since(began) <= TTL - MARGIN, "in time");
    assert!(!next.is_finished(), "nobody else leads yet");
    assert!(!first.is_valid());
    let next = next.await.unwrap().unwrap();
    assert!(next.fence() > first.fence());
    assert!(first.publish("late").await.unwrap_err().is_lost());
}

#[tokio::test(start_paused = true)]
async fn lost_leadership_cancels_its_body() {
    let fixture = Fixture::new();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let led = leadership.run(async |_| pending::<()>().await).await;
    let reason = led.unwrap_err().lost_reason();
    assert_eq!(reason, Some(LostReason::Unreachable));
}

#[tokio::test(start_paused = true)]
async fn observer_reports_failures_and_continues() {
    let fixture = Fixture::new();
    let (other, store) = fixture.client_apart();
    let leadership = election(&fixture.client, "a").campaign().await.unwrap();
    let mut watch = watch(&other);
    assert_eq!(next_leader(&mut watch).await, "a");
    store.set(Fault::Unreachable);
    assert_eq!(next_leader(&mut watch).await, "Unreachable");
    assert!(
        silent(&fixture, &mut watch, Duration::from_secs(30)).await,
        "said once"
    );
    store.set(Fault::None);
    assert_eq!(next_leader(&mut watch).await, "a", "known again");
    drop(leadership);
}
