use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{Break, Mode, Owner, Store as _, background};
use leasehold_testkit::telemetry::{SeenEvent, SeenSpan, Witness};
use leasehold_testkit::{Call, Fault, FaultyMember};
use tracing::{Instrument as _, Level};

use super::documented::rows;
use crate::scene::{Scene, TTL};

const SECOND: Duration = Duration::from_secs(1);

fn the_only<'a>(spans: &'a [SeenSpan], name: &str) -> (usize, &'a SeenSpan) {
    let mut named = spans.iter().enumerate().filter(|(_, it)| it.name == name);
    let span = named.next().expect(name);
    assert!(named.next().is_none(), "{name} is there twice");
    span
}

fn fields(span: &SeenSpan, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| span.fields[name].clone()).collect()
}

/// Who answered what within that span.
fn answers(events: &[SeenEvent], span: usize) -> BTreeMap<String, String> {
    let within = events.iter().filter(|event| event.span == Some(span));
    let answered = within.filter(|event| event.fields["message"] == "answered");
    answered
        .map(|event| {
            assert_eq!(event.level, Level::TRACE);
            (
                event.fields["member"].clone(),
                event.fields["outcome"].clone(),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_acquire_is_within_the_callers_span_and_its_round_within_it_with_each_members_answer() {
    let scene = Scene::quorum(3);
    let witness = Witness::new();
    let _watching = witness.watch();
    scene.members[1].set(Fault::Unreachable);
    // It answers when all is decided.
    scene.members[2].set(Fault::Slow(SECOND / 2));
    let caller = tracing::info_span!(target: "leasehold_caller", "caller");
    let acquiring = scene.client.lock("x").mode(Mode::Shared).acquire();
    let guard = acquiring.instrument(caller).await.unwrap();
    scene.settle().await;
    assert!(!witness.is_within());
    let spans = witness.spans();
    let (caller, _) = the_only(&spans, "caller");
    let (acquire, span) = the_only(&spans, "acquire");
    assert_eq!((span.parent, span.level), (Some(caller), Level::INFO));
    let waited = fields(span, &["lock", "mode", "outcome", "waited"]);
    assert_eq!(waited[..3], ["x", "shared", "granted"]);
    assert!(waited[3].starts_with("50"), "{waited:?}");
    let (round, span) = the_only(&spans, "round");
    assert_eq!((span.parent, span.level), (Some(acquire), Level::DEBUG));
    let told = fields(span, &["lock", "mode", "members", "outcome"]);
    assert_eq!(told, ["x", "shared", "3", "granted"]);
    let answered = answers(&witness.events(), round);
    assert_eq!(answered["m0"], "granted");
    assert!(answered["m1"].contains("refused"), "{answered:?}");
    assert_eq!(answered["m2"], "granted");
    let last = tracing::info_span!(target: "leasehold_caller", "last");
    guard.release().instrument(last).await.unwrap();
    let spans = witness.spans();
    let (last, _) = the_only(&spans, "last");
    let (release, span) = the_only(&spans, "release");
    assert_eq!((span.parent, span.level), (Some(last), Level::INFO));
    assert_eq!(fields(span, &["lock", "outcome"]), ["x", "released"]);
    scene.pass(SECOND).await;
    let answered = answers(&witness.events(), release);
    assert_eq!(answered["m0"], "released");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_answers_after_the_decision_is_told_within_its_round() {
    let scene = Scene::quorum(3);
    let witness = Witness::new();
    let _watching = witness.watch();
    scene.members[2].set(Fault::Slow(SECOND / 2));
    let guard = scene.client.lock("x").acquire().await.unwrap();
    let (round, _) = the_only(&witness.spans(), "round");
    let before = answers(&witness.events(), round);
    assert!(!before.contains_key("m2"), "{before:?}");
    scene.pass(SECOND).await;
    assert_eq!(answers(&witness.events(), round)["m2"], "granted");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn each_member_is_told_with_what_it_answered_to_whatever_it_was_asked() {
    let scene = Scene::quorum(3);
    let witness = Witness::new();
    let _watching = witness.watch();
    let last = |name: &str| {
        let spans = witness.spans();
        let span = spans.iter().rposition(|span| span.name == name);
        let answered = answers(&witness.events(), span.expect(name));
        answered.into_values().collect::<Vec<_>>()
    };
    // One counter is ahead of the others, so that the next fence has to be sealed.
    let before = scene.claim("x");
    scene.members[0].acquire(&before).await.unwrap();
    scene.members[0].release(&before).await.unwrap();
    let lock = scene.client.lock("x");
    let guard = lock.acquire().await.unwrap();
    scene.settle().await;
    let answered = last("round");
    assert!(answered.contains(&"sealed".into()), "{answered:?}");
    assert!(lock.try_acquire().await.unwrap().is_none());
    scene.settle().await;
    assert_eq!(last("round"), ["busy"; 3]);
    for store in &scene.stores {
        store.forget(guard.key());
    }
    guard.lost().await;
    scene.settle().await;
    assert_eq!(last("renewal_round"), ["not all renewed"; 3]);
    guard.release().await.unwrap();
    // A majority decides, and nobody listens any more.
    assert_eq!(last("release"), ["was lost"; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_at_the_same_time_is_not_mixed_up() {
    let scene = Scene::quorum(3);
    let witness = Witness::new();
    let _watching = witness.watch();
    for member in &scene.members {
        member.set(Fault::Jittery(SECOND / 10));
    }
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let locks = names.map(|name| background::spawn(scene.client.lock(name).acquire()));
    for lock in locks {
        // Whenever this task runs nobody is within a span: none is held while its work waits.
        assert!(!witness.is_within());
        lock.await.unwrap().unwrap().release().await.unwrap();
    }
    let spans = witness.spans();
    let rounds: Vec<&SeenSpan> = spans.iter().filter(|it| it.name == "round").collect();
    assert_eq!(rounds.len(), names.len());
    for round in rounds {
        let acquire = &spans[round.parent.expect("an acquire")];
        assert_eq!(acquire.name, "acquire");
        assert_eq!(acquire.fields["lock"], round.fields["lock"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_tells_what_became_of_each_lease_and_who_answered() {
    let scene = Scene::quorum(3);
    let witness = Witness::new();
    let _watching = witness.watch();
    let guard = scene.client.lock("x").acquire().await.unwrap();
    let first = guard.deadline();
    guard.deadline_moved(first).await;
    scene.settle().await;
    let spans = witness.spans();
    let (renewal, span) = the_only(&spans, "renewal");
    assert_eq!((span.parent, span.level), (None, Level::DEBUG));
    let told = fields(span, &["leases", "renewed", "lost", "unknown"]);
    assert_eq!(told, ["1", "1", "0", "0"]);
    let (round, span) = the_only(&spans, "renewal_round");
    assert_eq!((span.parent, span.level), (Some(renewal), Level::DEBUG));
    assert_eq!(fields(span, &["leases", "members"]), ["1", "3"]);
    let answered = answers(&witness.events(), round);
    let expected = ["m0", "m1", "m2"].map(|member| (member.into(), "renewed".into()));
    assert_eq!(answered, BTreeMap::from(expected));
    for member in &scene.members {
        member.set(Fault::Unreachable);
    }
    guard.lost().await;
    let last = witness.named("renewal").pop().expect("a renewal");
    assert_eq!(last.fields["unknown"], "1");
}

#[tokio::test(start_paused = true)]
async fn the_manual_has_every_span_with_all_its_fields() {
    let scene = Scene::quorum(3);
    let witness = Witness::new();
    let _watching = witness.watch();
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.settle().await;
    assert_eq!(witness.open(), [""; 0], "none lives on with the guard");
    scene.pass(TTL).await;
    guard.release().await.unwrap();
    scene.settle().await;
    assert_eq!(witness.open(), [""; 0]);
    let row = |span: SeenSpan| {
        let level = span.level.to_string().to_lowercase();
        (span.name.to_owned(), level, span.declared.join(", "))
    };
    let seen: BTreeSet<_> = witness.spans().into_iter().map(row).collect();
    let documented = ["acquire", "release", "renewal", "round"].map(rows);
    let documented = documented.into_iter().flatten();
    let documented = documented.map(|row| (row[0].clone(), row[1].clone(), row[2].clone()));
    assert_eq!(seen, documented.collect());
}

fn owners(members: &[FaultyMember]) -> BTreeSet<Owner> {
    let calls = members.iter().flat_map(FaultyMember::calls);
    let owners = calls.map(|call| match call {
        Call::Acquire(claim)
        | Call::AcquireInTurn(claim, _)
        | Call::Renew(claim)
        | Call::Release(claim)
        | Call::Seal(claim, _)
        | Call::Heal(claim) => claim.owner,
        Call::LeaveQueue(waiter) => waiter,
    });
    owners.collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_that_frees_a_lock_is_in_any_span_or_event() {
    let witness = Witness::new();
    let _watching = witness.watch();
    let scene = Scene::quorum(3);
    let other = scene.other_client();
    // Waits, hand-overs, turns that nobody needs any more, a lease that is healed, refusals.
    let guard = scene.client.lock("x").acquire().await.unwrap();
    let waiting = background::spawn(other.lock("x").acquire());
    let given_up = background::spawn(other.lock("x").acquire());
    scene.pass(SECOND).await;
    assert!(other.lock("x").try_acquire().await.unwrap().is_none());
    scene.members[0].set(Fault::Slow(SECOND / 5));
    drop(guard);
    let guard = waiting.await.unwrap().unwrap();
    given_up.abort();
    drop(guard);
    scene.pass(3 * SECOND).await;
    scene.members[0].set(Fault::None);
    let shut = other.lock("shut").lock_delay(SECOND);
    let shut = shut.acquire().await.unwrap();
    shut.give_up();
    shut.release().await.unwrap();
    let guard = other.lock("x").acquire().await.unwrap();
    scene.stores[1].restart(false);
    scene.pass(2 * TTL).await;
    let handle = guard.into_handle().unwrap();
    let guard = other.adopt(&handle).await.unwrap();
    let broken = scene
        .client
        .break_lock("x", guard.fence(), Break::at_once());
    broken.await.unwrap();
    guard.lost().await;
    for member in &scene.members {
        member.set(Fault::Unreachable);
    }
    let lock = scene.client.lock("y").wait(SECOND);
    lock.acquire().await.unwrap_err();
    let values = witness.values();
    assert!(values.len() > 100, "{}", values.len());
    for rare in [
        "a turn that is not needed is passed on",
        "not released, because it was lost",
    ] {
        let happened = values.iter().any(|value| value == rare);
        assert!(happened, "not put to the test: {rare}");
    }
    let owners = owners(&scene.members);
    assert!(owners.len() > 5, "{owners:?}");
    for owner in owners {
        let text = owner.to_string();
        let (_, nonce) = text.split_once('.').expect("an owner");
        let told = values.iter().find(|value| value.contains(nonce));
        assert_eq!(told, None);
    }
}
