//! Members that disagree, hand over late, or are gone.

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{Attempt, Inspection as _, Key, Member, Mode, Owner, Ticket, Turn};
use leasehold_testkit::Fault;

use super::line::{HOLD, Line, assert_nothing_left, clients, free_at, held_by_hand, hold};
use crate::scene::Scene;

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_in_the_middle_of_its_turn_hands_it_on() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let clients = clients(&scene, 2);
    let line = Line::begin(&scene, &clients).await;
    // The turn reaches the first one while it cannot ask.
    for member in &scene.members[..2] {
        member.set(Fault::Slow(Duration::from_millis(200)));
    }
    let freed = scene.now();
    let releasing = leasehold::background::spawn(async move { holder.release().await });
    scene.settle().await;
    line.waiting[0].abort();
    assert_eq!(line.order().await, [1]);
    releasing.await.unwrap().unwrap();
    assert!(scene.now().since(freed) < Duration::from_millis(1_500));
    for member in &scene.members {
        member.set(Fault::None);
    }
    scene.pass(Duration::from_secs(2)).await;
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn who_never_came_in_at_a_minority_is_out_of_its_queue_with_the_release() {
    let scene = Scene::quorum(3);
    let before = held_by_hand(&scene).await;
    let waiting = leasehold::background::spawn(scene.client.lock("line").acquire());
    scene.settle().await;
    free_at(&scene, &before, [0, 1]).await;
    let guard = waiting.await.unwrap().unwrap();
    let key = Key::new("line").unwrap();
    let queued = async || scene.stores[2].waiters(&key).await.unwrap().len();
    assert_eq!(queued().await, 1, "its turn may yet come there");
    guard.release().await.unwrap();
    scene.settle().await;
    assert_eq!(queued().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_minority_of_dead_members_changes_nothing() {
    for fault in [Fault::Unreachable, Fault::Frozen] {
        let scene = Scene::quorum(5);
        let clients = clients(&scene, 4);
        for member in &scene.members[3..] {
            member.set(fault);
        }
        let holder = hold(&scene.client).await;
        let line = Line::begin(&scene, &clients).await;
        scene.pass(Duration::from_secs(4)).await;
        let freed = scene.now();
        holder.release().await.unwrap();
        assert_eq!(line.order().await, [0, 1, 2, 3], "{fault:?}");
        let took = scene.now().since(freed);
        assert!(took < HOLD * 4 + Duration::from_millis(100), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn queues_that_differ_are_brought_together_by_the_older_ticket() {
    let scene = Scene::quorum(5);
    let holder = hold(&scene.client).await;
    let clients = clients(&scene, 2);
    // The first one is in the queues of two members alone, the second one in those of two others;
    // the fifth is gone for good.
    scene.members[4].set(Fault::Unreachable);
    let mut lines = Vec::new();
    for (client, missed) in clients.iter().zip([[2, 3], [0, 1]]) {
        for member in missed {
            scene.members[member].set(Fault::Unreachable);
        }
        lines.push(Line::begin(&scene, std::slice::from_ref(client)).await);
        for member in missed {
            scene.members[member].set(Fault::None);
        }
    }
    let freed = scene.now();
    holder.release().await.unwrap();
    for line in lines {
        assert_eq!(line.order().await, [0]);
    }
    let took = scene.now().since(freed);
    assert!(took < Duration::from_millis(500), "{took:?}");
    scene.members[4].set(Fault::None);
    scene.pass(Duration::from_secs(2)).await;
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hands_over_late_is_taken_too() {
    let scene = Scene::quorum(3);
    let claim = held_by_hand(&scene).await;
    let (waiter, behind) = (scene.other_client(), scene.other_client());
    let asking = leasehold::background::spawn(waiter.lock("line").acquire());
    scene.settle().await;
    let next = leasehold::background::spawn(behind.lock("line").acquire());
    scene.settle().await;
    free_at(&scene, &claim, [0, 1]).await;
    let guard = asking.await.unwrap().unwrap();
    let key = Key::new("line").unwrap();
    let holders = scene.stores[2].holders(&key).await.unwrap();
    assert_eq!(holders[0].owner, Some(claim.owner), "not yet");
    free_at(&scene, &claim, [2]).await;
    let holders = scene.stores[2].holders(&key).await.unwrap();
    assert_eq!(holders[0].owner, Some(guard.owner()));
    guard.release().await.unwrap();
    next.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hands_over_while_the_others_are_asked_is_taken_too() {
    let scene = Scene::quorum(3);
    let claim = held_by_hand(&scene).await;
    let waiter = scene.other_client();
    let asking = leasehold::background::spawn(waiter.lock("line").acquire());
    scene.settle().await;
    scene.members[1].set(Fault::Slow(Duration::from_millis(50)));
    free_at(&scene, &claim, [0, 1]).await;
    let waits = scene.stores[0].waiters(&claim.key).await.unwrap().len();
    assert_eq!(
        waits, 0,
        "its attempt is under way, and was refused at the last member"
    );
    free_at(&scene, &claim, [2]).await;
    let guard = asking.await.unwrap().unwrap();
    scene.settle().await;
    let holders = scene.stores[2].holders(&claim.key).await.unwrap();
    assert_eq!(holders[0].owner, Some(guard.owner()));
    guard.release().await.unwrap();
    scene.pass(Duration::from_millis(100)).await;
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_and_is_taken_late_is_freed_there_too() {
    let scene = Scene::quorum(3);
    let claim = held_by_hand(&scene).await;
    let waiter = scene.other_client();
    let asking = leasehold::background::spawn(waiter.lock("line").acquire());
    scene.settle().await;
    // Its refusal is still on the way when it hands the lock over.
    scene.members[2].set(Fault::Slow(Duration::from_millis(50)));
    free_at(&scene, &claim, [0, 1]).await;
    let guard = asking.await.unwrap().unwrap();
    free_at(&scene, &claim, [2]).await;
    scene.pass(Duration::from_millis(200)).await;
    let holders = scene.stores[2].holders(&claim.key).await.unwrap();
    assert_eq!(holders[0].owner, Some(guard.owner()));
    guard.release().await.unwrap();
    scene.pass(Duration::from_millis(200)).await;
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_made_shared_is_taken_late_in_shared_mode() {
    let scene = Scene::quorum(3);
    let claim = held_by_hand(&scene).await;
    let waiter = scene.other_client();
    let asking = leasehold::background::spawn(waiter.lock("line").acquire());
    scene.settle().await;
    free_at(&scene, &claim, [0, 1]).await;
    let guard = asking.await.unwrap().unwrap();
    guard.downgrade().await.unwrap();
    free_at(&scene, &claim, [2]).await;
    let holders = scene.stores[2].holders(&claim.key).await.unwrap();
    assert_eq!(holders[0].owner, Some(guard.owner()));
    assert_eq!(holders[0].mode, Mode::Shared);
    guard.release().await.unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn who_fails_for_want_of_a_majority_keeps_its_place_where_it_was_granted() {
    let scene = Scene::quorum(5);
    let claim = held_by_hand(&scene).await;
    let clients = clients(&scene, 2);
    let line = Line::begin(&scene, &clients).await;
    free_at(&scene, &claim, [0, 1]).await;
    // On the word of two it tries, and fails.
    scene.pass(Duration::from_millis(30)).await;
    let key = Key::new("line").unwrap();
    for member in [0, 1] {
        let waiters = scene.stores[member].waiters(&key).await.unwrap();
        let first = waiters[0].ticket.waiter.client();
        assert_eq!(first, clients[0].id());
        assert_eq!(waiters.len(), 2);
    }
    free_at(&scene, &claim, [2, 3, 4]).await;
    assert_eq!(line.order().await, [0, 1]);
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_wait_that_is_over_is_passed_on_at_once() {
    let scene = Scene::quorum(3);
    let clients = clients(&scene, 2);
    let holder = hold(&scene.client).await;
    let line = Line::begin(&scene, &clients[..1]).await;
    holder.release().await.unwrap();
    assert_eq!(line.order().await, [0]);
    // A late message of the first client's wait, or of one like it.
    let holder = hold(&scene.client).await;
    let ticket = Ticket {
        since: WallTime::from_micros(1),
        waiter: Owner::random(clients[0].id(), &*scene.ambient.entropy),
    };
    for store in &scene.stores {
        let stray = scene.claim("line");
        let answer = store.acquire_in_turn(&stray, &Turn::Queued(ticket)).await;
        assert!(matches!(answer, Ok(Attempt::Busy(_))));
    }
    let line = Line::begin(&scene, &clients[1..]).await;
    let freed = scene.now();
    holder.release().await.unwrap();
    assert_eq!(line.order().await, [0]);
    let took = scene.now().since(freed);
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn every_hint_may_be_lost() {
    for members in [1, 3] {
        let scene = Scene::quorum(members);
        let holder = hold(&scene.client).await;
        let line = Line::begin(&scene, &clients(&scene, 3)).await;
        for store in &scene.stores {
            // Connections end, and with them whatever would have been told.
            store.restart(true);
        }
        holder.release().await.unwrap();
        let order = line.order().await;
        assert_eq!(order.len(), 3);
    }
}
