//! The renewer: renewal, doubt, and deadlines that fire by themselves.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::store::background;
use leasehold::{Effect, ErrorKind, GuardState, LostReason, ReleaseOutcome};
use leasehold_testkit::telemetry::TraceRecorder;
use leasehold_testkit::{Fault, StoreCall};
use tracing::Level;

use crate::fixture::{Fixture, MARGIN, TTL, is_free, take};

fn is_renewal(call: &StoreCall) -> bool {
    matches!(call, StoreCall::Renew(_))
}

#[tokio::test(start_paused = true)]
async fn guard_is_renewed_after_a_third_of_ttl() {
    let fixture = Fixture::new();
    let sent = fixture.now();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    assert_eq!(guard.deadline(), Some(sent + TTL - MARGIN));
    let moved = guard.deadline_moved(guard.deadline()).await.unwrap();
    let first_renewal = fixture.now().since(sent);
    assert!(
        first_renewal <= TTL / 3 && first_renewal >= TTL / 10,
        "{first_renewal:?}"
    );
    assert_eq!(moved, fixture.now() + TTL - MARGIN);
    fixture.pass(Duration::from_secs(600)).await;
    assert!(guard.is_valid());
    let renewals = fixture.count(is_renewal);
    assert!(
        (55..=65).contains(&renewals),
        "{renewals} renewals in ten minutes"
    );
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    let renewals = fixture.count(is_renewal);
    fixture.pass(TTL).await;
    assert_eq!(
        fixture.count(is_renewal),
        renewals,
        "a freed lock is renewed no more"
    );
}

#[tokio::test(start_paused = true)]
async fn early_release_prevents_every_renewal() {
    let fixture = Fixture::new();
    // The renewer hears of this lock first. When it is due, the renewer looks after the others, too.
    let kept = fixture.client.lock("kept").acquire().await.unwrap();
    for _ in 0..10 {
        take(&fixture.client, "x").await;
    }
    fixture.pass(TTL).await;
    assert!(kept.is_valid());
    let of_others = |call: &StoreCall| matches!(call, StoreCall::Renew(request) if request.key.as_str() != "kept");
    assert_eq!(fixture.count(of_others), 0);
}

#[tokio::test(start_paused = true)]
async fn loss_is_reported_after_it_happened() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    fixture.pass(TTL).await;
    // The renewer found out before any caller asked.
    let reason = guard.lost().now_or_never();
    assert_eq!(reason, Some(LostReason::Unreachable));
}

#[tokio::test(start_paused = true)]
async fn released_guard_reports_no_loss() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let lost = guard.lost();
    guard.release().await.unwrap();
    fixture.pass(TTL * 2).await;
    assert_eq!(lost.now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn renewed_deadline_counts_from_sending() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    let way = Duration::from_millis(1_500);
    fixture.store.set(Fault::Slow(way));
    let first = guard.deadline();
    let renewed = guard.deadline_moved(first).await;
    assert_eq!(renewed, Some(fixture.now() - way + TTL - MARGIN));
}

#[tokio::test(start_paused = true)]
async fn slow_answers_lose_no_lock() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    fixture.store.set(Fault::Slow(Duration::from_millis(2_500)));
    for _ in 0..2 {
        let deadline = guard.deadline();
        let moved = guard.deadline_moved(deadline).await;
        assert!(moved > deadline, "{moved:?}");
    }
    fixture.pass(TTL).await;
    assert!(guard.is_valid());
    let other = fixture.client.lock("y").ttl(TTL).acquire().await;
    assert!(other.is_ok(), "{other:?}");
}

#[tokio::test(start_paused = true)]
async fn frozen_store_loses_the_guard_at_its_deadline() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let deadline = guard.deadline().unwrap();
    fixture.store.set(Fault::Frozen);
    assert_eq!(guard.lost().await, LostReason::Unreachable);
    assert_eq!(fixture.now(), deadline, "neither earlier nor later");
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), Duration::ZERO);
    let error = guard.ensure(Duration::ZERO).unwrap_err();
    assert!(
        error.is_lost() && error.to_string().contains("its deadline had passed"),
        "{error}"
    );
    // All renewals that were sent now take effect at the store; the guard stays lost.
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_secs(5)).await;
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn unanswered_batch_ends_at_each_leases_deadline() {
    let fixture = Fixture::new();
    let mut guards = Vec::new();
    for more in [100, 0, 200].map(Duration::from_millis) {
        let lock = fixture
            .client
            .lock(format!("lock/{more:?}"))
            .ttl(TTL + more);
        guards.push(lock.acquire().await.unwrap());
    }
    // For it the renewer wakes within a second. All others are due by then, and no renewal of theirs is
    // given up before the last deadline.
    let short = fixture.client.lock("short").ttl(TTL / 10);
    let short = short.acquire().await.unwrap();
    // The renewer hears of them.
    fixture.settle().await;
    fixture.store.set(Fault::Frozen);
    fixture.env.clock.was_paused(Duration::from_secs(25));
    let ended = guards.iter().map(async |guard| {
        let deadline = guard.deadline().unwrap();
        assert_eq!(guard.lost().await, LostReason::Expired);
        assert_eq!(fixture.now(), deadline, "neither earlier nor later");
    });
    futures_util::future::join_all(ended).await;
    assert_eq!(fixture.count(is_renewal), guards.len());
    assert!(!short.is_valid());
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_is_retried_each_second() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    while !guard.is_in_doubt() {
        fixture.pass(Duration::from_millis(100)).await;
        assert!(guard.is_valid(), "doubt comes before the loss");
    }
    fixture.pass(Duration::from_secs(5)).await;
    assert!(guard.is_in_doubt() && guard.is_valid());
    assert_eq!(guard.state(), GuardState::InDoubt);
    let tries = fixture.count(is_renewal);
    assert!(
        (5..=7).contains(&tries),
        "{tries} tries in five seconds of doubt"
    );
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_secs(2)).await;
    assert!(!guard.is_in_doubt() && guard.is_valid());
    assert_eq!(guard.state(), GuardState::Held);
    assert!(guard.remaining() > Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn ensure_ignores_future_renewals() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    guard.ensure(Duration::from_secs(26)).unwrap();
    let error = guard.ensure(Duration::from_secs(28)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("28s were asked for"), "{error}");
    assert!(
        guard.is_valid(),
        "asking for more than is left loses nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn deleted_lease_is_lost_at_the_next_renewal() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let thief = fixture.other_client();
    // Frees the lock behind the holder's back, as an operator's DEL would.

    let request = fixture
        .store
        .calls()
        .into_iter()
        .find_map(|call| match call {
            StoreCall::Acquire(request) => Some(request),
            _ => None,
        });
    fixture
        .apart
        .release(&Arc::new(request.unwrap()))
        .await
        .unwrap();
    let stolen = thief.lock("x").acquire().await.unwrap();
    assert!(stolen.fence() > guard.fence());
    assert_eq!(guard.lost().await, LostReason::Taken);
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    assert!(stolen.is_valid());
    assert!(
        thief.lock("x").try_acquire().await.unwrap().is_none(),
        "nobody freed the thief's"
    );
}

#[tokio::test(start_paused = true)]
async fn panicking_renewal_harms_no_other_lease() {
    let fixture = Fixture::new();
    let guards = [
        fixture.client.lock("x").acquire().await.unwrap(),
        fixture
            .client
            .lock("y")
            .ttl(TTL / 2)
            .acquire()
            .await
            .unwrap(),
    ];
    fixture.store.set(Fault::Panics);
    fixture.pass(Duration::from_secs(11)).await;
    assert!(guards.iter().all(leasehold::Guard::is_in_doubt));
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_secs(60)).await;
    assert!(
        guards
            .iter()
            .all(|guard| guard.is_valid() && !guard.is_in_doubt())
    );
}

#[tokio::test(start_paused = true)]
async fn drop_hides_a_release_that_panics() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Panics);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn max_hold_ends_a_healthy_guard() {
    let fixture = Fixture::new();
    let span = Duration::from_secs(100);
    let sent = fixture.now();
    let guard = fixture
        .client
        .lock("x")
        .max_hold(span)
        .acquire()
        .await
        .unwrap();
    assert_eq!(guard.lost().await, LostReason::MaxHold);
    assert_eq!(fixture.now(), sent + span);
    assert_eq!(
        guard.release().await.unwrap(),
        ReleaseOutcome::Released,
        "its lease still stood"
    );
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn simultaneous_locks_are_renewed_in_time() {
    let fixture = Fixture::new();
    let mut guards = Vec::new();
    for n in 0..1000 {
        let lock = fixture.client.lock(format!("lock/{n}"));
        guards.push(lock.acquire().await.unwrap());
    }
    let mut renewals = vec![0];
    for _ in 0..100 {
        fixture.pass(Duration::from_secs(1)).await;
        renewals.push(fixture.count(is_renewal));
        let left = guards.iter().map(leasehold::Guard::remaining).min();
        assert!(left.unwrap() > TTL / 2 - MARGIN, "{left:?} left");
    }
    let most = renewals.windows(2).map(|pair| pair[1] - pair[0]).max();
    let mean = renewals[100] / 100;
    assert!(most.unwrap() <= 2 * mean, "{most:?} a second, {mean} mean");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_leases_are_renewed_in_few_messages() {
    let fixture = Fixture::new();
    let mut guards = Vec::new();
    for n in 0..1000 {
        guards.push(
            fixture
                .client
                .lock(format!("lock/{n}"))
                .acquire()
                .await
                .unwrap(),
        );
    }
    fixture.pass(Duration::from_secs(95)).await;
    assert!(guards.iter().all(leasehold::Guard::is_valid));
    let renewals = fixture.count(is_renewal);
    assert!((9_000..=11_000).contains(&renewals), "{renewals} renewals");
}

#[tokio::test(start_paused = true)]
async fn outage_of_many_locks_is_logged_once() {
    let recorder = TraceRecorder::new();
    let _watched = recorder.watch();
    let fixture = Fixture::new();
    let mut guards = Vec::new();
    for number in 0..500 {
        let lock = fixture.client.lock(format!("job/{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    let lines = |level: Level| {
        let mut events = recorder.events();
        events.retain(|event| event.level == level);
        events
    };
    let (warned, informed) = (lines(Level::WARN).len(), lines(Level::INFO).len());
    fixture.store.set(Fault::Frozen);
    fixture.pass(TTL / 2).await;
    assert!(guards.iter().any(leasehold::Guard::is_in_doubt));
    let outage = &lines(Level::WARN)[warned..];
    assert_eq!(outage.len(), 1, "{outage:#?}");
    assert!(outage[0].fields.contains_key("locks"));
    fixture.store.set(Fault::None);
    fixture.pass(TTL / 2).await;
    let valid = guards.iter().filter(|guard| guard.is_valid()).count();
    assert_eq!(lines(Level::WARN).len() - warned - 1, 500 - valid, "losses");
    let over = &lines(Level::INFO)[informed..];
    assert_eq!(over.len(), 1, "{over:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_is_unknown() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Frozen);
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(error.key().unwrap().as_str(), "x");
    fixture.store.set(Fault::None);
    assert!(
        fixture
            .client
            .lock("x")
            .wait(TTL / 2)
            .acquire()
            .await
            .is_ok(),
        "freed behind our back"
    );
}

#[tokio::test(start_paused = true)]
async fn failed_release_is_repeated_until_answered() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let release = background::spawn(guard.release());
    fixture.pass(Duration::from_secs(1)).await;
    assert!(fixture.count(|call| matches!(call, StoreCall::Release(_))) > 1);
    fixture.store.set(Fault::None);
    assert_eq!(release.await.unwrap().unwrap(), ReleaseOutcome::Released);
}

#[tokio::test(start_paused = true)]
async fn release_is_given_up_once_the_lease_is_over() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    guard.release().await.unwrap_err();
    fixture.pass(2 * TTL).await;
    let is_release = |call: &StoreCall| matches!(call, StoreCall::Release(_));
    let count = fixture.count(is_release);
    fixture.pass(TTL).await;
    assert_eq!(fixture.count(is_release), count);
}

#[tokio::test(start_paused = true)]
async fn leases_that_ended_are_released_no_more() {
    let fixture = Fixture::new();
    let locks = (0..1_000).map(|number| fixture.client.lock(format!("x{number}")).acquire());
    let guards = futures_util::future::join_all(locks).await;
    fixture.store.set(Fault::Frozen);
    drop(guards);
    fixture.pass(2 * TTL).await;
    let is_release = |call: &StoreCall| matches!(call, StoreCall::Release(_));
    let count = fixture.count(is_release);
    fixture.pass(10 * TTL).await;
    assert_eq!(fixture.count(is_release), count);
}

#[tokio::test(start_paused = true)]
async fn caller_of_a_slow_release_goes_on() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let lost = fixture.client.lock("y").acquire().await.unwrap();
    lost.give_up();
    fixture.store.set(Fault::Slow(TTL * 10));
    let most = Duration::from_secs(4);
    for (guard, limit) in [(guard, most), (lost, Duration::from_millis(100))] {
        let begun = fixture.now();
        let error = guard.release().await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
        let waited = fixture.now().since(begun);
        assert!(waited <= limit + Duration::from_millis(1), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn close_forgets_releases_whose_lease_ended() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Frozen);
    let begun = fixture.now();
    assert!(guard.release().await.is_err());
    fixture.pass(2 * TTL - fixture.now().since(begun)).await;
    fixture.store.set(Fault::None);
    fixture.client.close(Duration::ZERO).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn renewal_on_demand_moves_the_deadline() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.pass(TTL / 10).await;
    let most = TTL - MARGIN;
    assert_eq!(guard.ensure(most).unwrap_err().kind(), ErrorKind::Lost);
    guard.ensure_renewed(most).await.unwrap();
    assert_eq!(guard.deadline(), Some(fixture.now() + most));
    let before = fixture.count(is_renewal);
    guard.ensure_renewed(most).await.unwrap();
    assert_eq!(fixture.count(is_renewal), before, "it is long enough");
    let too_long = guard.ensure_renewed(TTL).await.unwrap_err();
    assert_eq!(too_long.kind(), ErrorKind::Lost);
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_on_demand_leaves_the_guard_valid() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let failed = guard.renew().await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unreachable);
    assert_eq!(failed.effect(), Effect::Unknown);
    assert_eq!(guard.state(), GuardState::InDoubt);
    fixture.store.set(Fault::None);
    guard.renew().await.unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    guard.give_up();
    let lost = guard.renew().await.unwrap_err();
    assert_eq!(lost.lost_reason(), Some(LostReason::GivenUp));
}
