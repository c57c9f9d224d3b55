//! Who is served when, and who is passed over.

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{
    Attempt, Client, Inspection as _, Key, Member, Order, Store, Ticket, Turn, Waiting,
};
use leasehold_testkit::Call;

use super::line::{HOLD, Line, assert_nothing_left, clients, held_by_hand, hold};
use crate::scene::{Scene, TTL};

#[tokio::test(start_paused = true)]
async fn waiters_of_many_clients_are_served_in_order_and_at_once() {
    for members in [1, 3, 5] {
        let scene = Scene::quorum(members);
        let holder = hold(&scene.client).await;
        let line = Line::begin(&scene, &clients(&scene, 6)).await;
        scene.pass(Duration::from_secs(4)).await;
        let freed = scene.now();
        holder.release().await.unwrap();
        assert_eq!(line.order().await, [0, 1, 2, 3, 4, 5]);
        let took = scene.now().since(freed);
        assert!(took < HOLD * 6 + Duration::from_millis(20), "{took:?}");
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_of_one_client_keep_their_order_too() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let line = Line::begin(&scene, &vec![scene.client.clone(); 40]).await;
    holder.release().await.unwrap();
    assert_eq!(line.order().await, (0..40).collect::<Vec<_>>());
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn who_gave_up_is_passed_over_and_leaves_nothing_behind() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let line = Line::begin(&scene, &clients(&scene, 5)).await;
    for gone in [0, 2] {
        line.waiting[gone].abort();
    }
    scene.settle().await;
    let key = Key::new("line").unwrap();
    for store in &scene.stores {
        assert_eq!(store.waiters(&key).await.unwrap().len(), 3);
    }
    let freed = scene.now();
    holder.release().await.unwrap();
    assert_eq!(line.order().await, [1, 3, 4]);
    assert!(scene.now().since(freed) < HOLD * 3 + Duration::from_millis(20));
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_waiter_costs_nothing() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    // As a process leaves it that was killed: it is the first in every queue, and nobody listens.
    let ticket = Ticket {
        since: WallTime::from_micros(1),
        waiter: scene.claim("line").owner,
    };
    for store in &scene.stores {
        let killed = scene.claim("line");
        let answer = store.acquire_in_turn(&killed, &Turn::Queued(ticket)).await;
        assert!(matches!(answer, Ok(Attempt::Busy(busy)) if busy.place == Some(1)));
    }
    let line = Line::begin(&scene, &clients(&scene, 2)).await;
    let freed = scene.now();
    holder.release().await.unwrap();
    assert_eq!(line.order().await, [0, 1]);
    let took = scene.now().since(freed);
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_dies_is_followed_by_the_head_when_its_lease_ends() {
    for members in [1, 3] {
        let scene = Scene::quorum(members);
        // Nobody renews it.
        held_by_hand(&scene).await;
        let began = scene.now();
        let line = Line::begin(&scene, &clients(&scene, 3)).await;
        assert_eq!(line.order().await, [0, 1, 2]);
        let took = scene.now().since(began);
        assert!(
            took < TTL + HOLD * 3 + Duration::from_millis(100),
            "{took:?}"
        );
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn barging_is_served_before_the_queue() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let line = Line::begin(&scene, &clients(&scene, 3)).await;
    let urgent = scene.other_client();
    let asking = urgent.lock("line").barging(true).acquire();
    let asking = leasehold::background::spawn(async move { asking.await?.release().await });
    scene.settle().await;
    let key = Key::new("line").unwrap();
    assert_eq!(scene.stores[0].waiters(&key).await.unwrap().len(), 3);
    holder.release().await.unwrap();
    assert_eq!(line.order().await, [0, 1, 2]);
    asking.await.unwrap().unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn who_was_refused_a_moment_ago_is_queued_by_its_first_request() {
    let scene = Scene::quorum(3);
    let _holder = hold(&scene.client).await;
    let client = scene.other_client();
    let lock = client.lock("line");
    assert!(lock.try_acquire().await.unwrap().is_none());
    for (pause, plainly) in [(500, 0), (1_001, 1)] {
        scene.pass(Duration::from_millis(pause)).await;
        let before = scene.members[0].calls().len();
        let waiting = leasehold::background::spawn(lock.acquire());
        scene.settle().await;
        let calls = scene.members[0].calls().split_off(before);
        let is_plain = |call: &&Call| matches!(call, Call::Acquire(_));
        assert_eq!(calls.iter().filter(is_plain).count(), plainly, "{calls:?}");
        assert!(matches!(calls.last(), Some(Call::AcquireInTurn(..))));
        waiting.abort();
        scene.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn those_far_behind_ask_seldom() {
    let scene = Scene::quorum(1);
    let holder = hold(&scene.client).await;
    let line = Line::begin(&scene, &vec![scene.client.clone(); 50]).await;
    let asked = |call: &Call| matches!(call, Call::AcquireInTurn(..));
    let before = scene.count(0, asked);
    scene.pass(Duration::from_secs(100)).await;
    let rate = (scene.count(0, asked) - before) as f64 / 100.0;
    // 16 at the front every 1 to 2 s, and 34 every 4 to 8.
    assert!((5.0..25.0).contains(&rate), "{rate} a second");
    holder.release().await.unwrap();
    assert_eq!(line.order().await.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_nobody_waits_for_is_taken_and_freed_as_before() {
    let scene = Scene::quorum(3);
    for _ in 0..5 {
        scene
            .client
            .lock("line")
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    for call in scene.members[0].calls() {
        assert!(
            matches!(call, Call::Acquire(_) | Call::Release(_)),
            "{call:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_is_promised() {
    for members in [1, 3] {
        let guarantees = Scene::quorum(members).store().guarantees();
        assert_eq!(guarantees.order, Order::Fifo);
        assert_eq!(guarantees.waiting, Waiting::Notified);
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_shown_in_order() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let clients = clients(&scene, 3);
    let line = Line::begin(&scene, &clients).await;
    let shown = scene
        .store()
        .waiters(&Key::new("line").unwrap())
        .await
        .unwrap();
    let pids: Vec<_> = shown
        .iter()
        .map(|waiter| waiter.ticket.waiter.client())
        .collect();
    let expected: Vec<_> = clients.iter().map(Client::id).collect();
    assert_eq!(pids, expected);
    assert!(shown.is_sorted_by_key(|waiter| waiter.ticket));
    holder.release().await.unwrap();
    assert_eq!(line.order().await.len(), 3);
}
