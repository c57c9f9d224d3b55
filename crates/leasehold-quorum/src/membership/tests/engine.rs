//! The same rules, seen through the whole engine.

use leasehold::{Renewal, Wait};

use super::fixture::{Scene, TTL, claim};
use super::*;
use crate::{Operation, Outcome};

#[test]
fn lease_is_repaired_where_a_restarted_member_votes_again() {
    let mut scene = Scene::new(3);
    let held = scene.acquire().unwrap();
    scene.restart_empty(0);
    assert!(matches!(scene.renew(&held), Renewal::Renewed));
    assert!(!scene.holds(0, &held), "it would not count there");
    for _ in 0..20 {
        scene.pass(TTL / 3);
        assert!(matches!(scene.renew(&held), Renewal::Renewed));
    }
    assert!(scene.holds(0, &held));
    scene.disconnect(1);
    assert!(matches!(scene.renew(&held), Renewal::Renewed));
}

#[test]
fn restarted_member_makes_no_second_holder() {
    let mut scene = Scene::new(3);
    scene.disconnect(2);
    let held = scene.acquire().unwrap();
    scene.connect(2);
    scene.restart_empty(1);
    let attempt = Operation::Acquire(Arc::new(claim()));
    let outcome = scene.run(attempt, TTL);
    assert!(matches!(outcome, Some(Outcome::Busy(_))), "{outcome:?}");
    scene.pass(SECOND);
    assert!(scene.holders[1].is_empty() && scene.holders[2].is_empty());
    scene.disconnect(2);
    let error = scene.acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    let reason = "m1: it restarted, lost data, or is new (no vote for 60s)";
    assert!(text.contains(reason), "{text}");
    scene.release(&held);
    scene.connect(2);
    scene.acquire().unwrap();
}

#[test]
fn confirmation_from_other_data_does_not_count() {
    let mut scene = Scene::new(3);
    let claim = Arc::new(claim());
    // The other members have to confirm the fence of this one.
    scene.counters[0] = claim.owner.since().as_micros() + 10;
    scene.disconnect(2);
    scene.forgets_grant = Some(1);
    let outcome = scene.run(Operation::Acquire(claim), TTL);
    let Some(Outcome::Failed(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
}

#[test]
fn silent_member_gets_only_a_status_request() {
    let mut scene = Scene::new(3);
    let held = scene.acquire().unwrap();
    scene.deaf.insert(2);
    assert!(matches!(scene.renew(&held), Renewal::Renewed));
    scene.pass(TTL / 3);
    scene.got[2].clear();
    assert!(matches!(scene.renew(&held), Renewal::Renewed));
    assert_eq!(scene.got[2], [""; 0]);
    assert!(
        scene
            .events
            .iter()
            .any(|it| it.starts_with("Fails { member: 2"))
    );
    scene.deaf.clear();
    scene.disconnect(2);
    scene.connect(2);
    assert_eq!(scene.got[2], ["status"]);
    scene.renew(&held);
    assert_eq!(scene.got[2], ["status", "renew"]);
}

#[test]
fn lease_released_during_a_lost_repair_is_released_again() {
    let mut scene = Scene::new(3);
    let held = scene.acquire().unwrap();
    scene.holders[0].clear();
    // The reply to the repair is lost with the connection.
    scene.lost = Some((0, "repair"));
    assert!(matches!(scene.renew(&held), Renewal::Renewed));
    assert!(scene.holds(0, &held));
    scene.disconnect(0);
    scene.lost = None;
    scene.release(&held);
    scene.connect(0);
    // The repair takes effect late, after the release.
    scene.holders[0].insert(held.claim.owner, held.fence.get());
    scene.pass(TTL);
    assert!(!scene.holds(0, &held));
}

#[test]
fn client_of_another_quorum_sends_no_lock_request() {
    let (world, _) = World::new(5);
    for (members, enforced) in [(3, true), (1, false)] {
        let world = World {
            servers: world.servers.clone(),
            ..world
        };
        let mut scene = Scene::of(world, members, enforced);
        let error = scene.acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        let reason =
            "m0: belongs to another quorum (generation 1): it has m0,m1,m2,m3,m4, this client m0";
        assert!(text.contains(reason), "{text}");
        assert!(!scene.got[0].contains(&"acquire"), "{:?}", scene.got[0]);
    }
}

#[test]
fn first_client_names_the_member_that_does_not_answer() {
    let mut world = World::bare(3);
    world.servers.iter_mut().for_each(|it| it.is_new = true);
    let mut scene = Scene::unconnected(world, 3, true);
    scene.connect(0);
    scene.connect(1);
    scene.disconnect(2);
    let error = scene.acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    let reason = "m0: the quorum is not initialized, because m2 did not answer";
    assert!(text.contains(reason), "{text}");
    scene.connect(2);
    scene.acquire().unwrap();
}

#[test]
fn attempt_waits_for_the_first_status() {
    let mut scene = Scene::unconnected(World::new(3).0, 3, true);
    let id = scene.start(Operation::Acquire(Arc::new(claim())));
    (0..3).for_each(|member| scene.connect(member));
    assert!(matches!(scene.outcomes[&id], Outcome::Acquired(_)));
}

#[test]
fn unanswered_first_connection_is_named() {
    let mut scene = Scene::unconnected(World::new(3).0, 3, true);
    scene.connect(0);
    let error = scene.acquire().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("m1: not connected yet; m2: "), "{text}");
}

#[test]
fn waiter_without_votes_asks_for_no_lock() {
    let mut scene = Scene::new(3);
    scene.restart_empty(0);
    scene.restart_empty(1);
    scene.pass(SECOND);
    (0..3).for_each(|member| scene.got[member].clear());
    let waiter = claim();
    let claim = Arc::new(waiter.with_wait(Wait::InTurn));
    let id = scene.start(Operation::Acquire(claim));
    let reason = "m0: it restarted, lost data, or is new (no vote for 60s)";
    let told = scene.progress.last().expect("an answer at once");
    assert!(told.contains(reason), "{told}");
    scene.pass(WAIT / 2);
    let told = scene.progress.iter();
    assert!(
        told.clone().all(|told| told.contains("no vote for")),
        "{told:?}"
    );
    for got in &scene.got[..3] {
        assert!(!got.contains(&"acquire"), "{got:?}");
        let looks = got.iter().filter(|name| **name == "status").count();
        assert!(looks < 70, "{looks}");
    }
    scene.pass(WAIT / 2);
    assert!(matches!(scene.outcomes[&id], Outcome::Acquired(_)));
}
