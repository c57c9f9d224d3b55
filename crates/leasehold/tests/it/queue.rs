//! Waiting in the queue: the real quorum over members in memory, which are slow, cut off, or dead.

use std::time::Duration;

use leasehold::{Attempt, Client, Error, Guard, Key, Order, Store, Waiting};
use leasehold_testkit::{Call, Fault};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::scene::{Scene, TTL};

/// Waiters of one lock, of which each says when it is granted, holds for 10 ms, and frees it.
struct Line {
    granted: mpsc::UnboundedReceiver<usize>,
    waiting: Vec<JoinHandle<Result<(), Error>>>,
}

const HOLD: Duration = Duration::from_millis(10);

impl Line {
    /// Lets `clients` begin to wait one after the other.
    async fn begin(scene: &Scene, clients: &[Client]) -> Self {
        let (sender, granted) = mpsc::unbounded_channel();
        let mut waiting = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            let (sender, ambient) = (sender.clone(), scene.ambient.clone());
            let asking = client.lock("line").acquire();
            waiting.push(leasehold::background::spawn(async move {
                let guard = asking.await?;
                sender.send(number).expect("the test listens");
                ambient.clock.sleep_until(ambient.clock.now() + HOLD).await;
                guard.release().await?;
                Ok(())
            }));
            scene.settle().await;
        }
        Self { granted, waiting }
    }

    /// The order in which all that go on waiting were granted.
    async fn order(mut self) -> Vec<usize> {
        for waiting in self.waiting {
            match waiting.await {
                Ok(outcome) => outcome.expect("a grant and a release"),
                Err(gone) => assert!(gone.is_cancelled()),
            }
        }
        let mut order = Vec::new();
        while let Ok(number) = self.granted.try_recv() {
            order.push(number);
        }
        order
    }
}

async fn hold(client: &Client) -> Guard {
    let guard = client.lock("line").try_acquire().await.expect("an answer");
    guard.expect("a free lock")
}

fn clients(scene: &Scene, count: usize) -> Vec<Client> {
    (0..count).map(|_| scene.other_client()).collect()
}

/// Nobody is left in a queue, and nothing reserved, at any member.
async fn assert_nothing_left(scene: &Scene) {
    scene.settle().await;
    let key = Key::new("line").expect("a valid name");
    for store in &scene.stores {
        assert_eq!(store.waiters(&key).await.expect("an answer"), []);
        assert_eq!(store.holders(&key).await.expect("an answer"), []);
    }
    let taken = scene
        .client
        .lock("line")
        .try_acquire()
        .await
        .expect("an answer");
    taken
        .expect("nothing reserved")
        .release()
        .await
        .expect("an answer");
}

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
async fn a_dead_waiter_costs_nothing() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let mut clients = clients(&scene, 3);
    let line = Line::begin(&scene, &clients).await;
    // As a process that is killed: nothing of it says goodbye, and nobody listens any more.
    for member in &scene.members {
        member.set(Fault::Unreachable);
    }
    line.waiting[0].abort();
    drop(clients.remove(0));
    scene.settle().await;
    for member in &scene.members {
        member.set(Fault::None);
    }
    let freed = scene.now();
    holder.release().await.unwrap();
    assert_eq!(line.order().await, [1, 2]);
    let took = scene.now().since(freed);
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_nothing_left(&scene).await;
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
    let holder = hold(&scene.client).await;
    let waiter = scene.other_client();
    let asking = leasehold::background::spawn(waiter.lock("line").acquire());
    scene.settle().await;
    // The release reaches the third member late; so does nothing else.
    scene.members[2].set(Fault::Frozen);
    holder.release().await.unwrap();
    let guard = asking.await.unwrap().unwrap();
    let key = Key::new("line").unwrap();
    let holders = |member: usize| scene.stores[member].holders(&key);
    assert_eq!(holders(0).await.unwrap()[0].owner, Some(guard.owner()));
    scene.members[2].set(Fault::None);
    scene.pass(Duration::from_secs(3)).await;
    assert_eq!(holders(2).await.unwrap()[0].owner, Some(guard.owner()));
    guard.release().await.unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_dies_is_followed_by_the_head_when_its_lease_ends() {
    for members in [1, 3] {
        let scene = Scene::quorum(members);
        // It belongs to nobody, who would renew it.
        let claim = scene.claim("line");
        let store = scene.store();
        let granted = store.acquire(&claim).await.unwrap();
        assert!(matches!(granted, Attempt::Granted(_)));
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
