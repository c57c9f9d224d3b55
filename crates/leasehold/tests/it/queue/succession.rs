//! A lock that stays with its client: whoever is next there asks behind the release.

use std::time::Duration;

use leasehold::{Client, Guard, Lock};
use leasehold_testkit::{Call, Fault};
use tokio::task::JoinHandle;

use super::line::{assert_nothing_left, hold};
use crate::scene::{Scene, quorum_of};

/// What a request takes to reach a member; answers and hints take nothing.
const WAY: Duration = Duration::from_millis(5);

/// Each is more than twice the one before: too long for who wants it to go on with the other's lease.
const LONGER: [u64; 4] = [5, 12, 28, 60];

/// `client` begins to wait for the lock.
async fn waiter(scene: &Scene, client: &Client) -> JoinHandle<Guard> {
    waiter_of(scene, client.lock("line")).await
}

async fn waiter_of(scene: &Scene, lock: Lock) -> JoinHandle<Guard> {
    let asking = lock.acquire();
    let waiting = leasehold::background::spawn(async move { asking.await.expect("a grant") });
    scene.settle().await;
    waiting
}

async fn waiters(scene: &Scene, clients: &[&Client]) -> Vec<JoinHandle<Guard>> {
    let mut waiting = Vec::new();
    for client in clients {
        waiting.push(waiter(scene, client).await);
    }
    waiting
}

/// Gives the lock back, and says how long it took until `next` had it.
async fn hand_over(scene: &Scene, guard: Guard, next: JoinHandle<Guard>) -> (Guard, Duration) {
    let began = scene.now();
    let releasing = leasehold::background::spawn(guard.release());
    let guard = next.await.expect("it goes on waiting");
    let took = scene.now().since(began);
    releasing.await.expect("no panic").expect("an answer");
    (guard, took)
}

/// A holder, and those who wait behind it at the same client, each for a longer lease.
async fn longer_ones(scene: &Scene) -> (Guard, Vec<JoinHandle<Guard>>) {
    let lock = |secs: &u64| scene.client.lock("line").ttl(Duration::from_secs(*secs));
    let holder = lock(&LONGER[0]).acquire().await.expect("a free lock");
    let mut waiting = Vec::new();
    for secs in &LONGER[1..] {
        waiting.push(waiter_of(scene, lock(secs)).await);
    }
    (holder, waiting)
}

/// How long each hand-over takes from one of `clients` to the next, with members that are [`WAY`] off.
async fn hand_overs(scene: &Scene, clients: &[&Client]) -> Vec<Duration> {
    let guard = hold(clients[0]).await;
    let waiting = waiters(scene, &clients[1..]).await;
    one_by_one(scene, guard, waiting).await
}

async fn one_by_one(
    scene: &Scene,
    mut guard: Guard,
    waiting: Vec<JoinHandle<Guard>>,
) -> Vec<Duration> {
    for member in &scene.members {
        member.set(Fault::Late(WAY));
    }
    let mut took = Vec::new();
    for next in waiting {
        let (next, span) = hand_over(scene, guard, next).await;
        guard = next;
        took.push(span);
    }
    guard.release().await.expect("an answer");
    come_near(scene).await;
    took
}

/// Lets all that is on its way arrive, and ends the delay.
async fn come_near(scene: &Scene) {
    scene.pass(WAY * 2).await;
    for member in &scene.members {
        member.set(Fault::None);
    }
}

fn asked_in_turn(call: &Call) -> bool {
    matches!(call, Call::AcquireInTurn(..))
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_stays_with_its_client_is_handed_over_in_one_trip() {
    for members in [1, 3, 5] {
        let scene = Scene::quorum(members);
        let (holder, waiting) = longer_ones(&scene).await;
        let took = one_by_one(&scene, holder, waiting).await;
        assert_eq!(took, [WAY; 3], "{members} members");
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_for_more_often_by_that() {
    let scene = Scene::quorum(3);
    let before = scene.count(1, asked_in_turn);
    let (holder, waiting) = longer_ones(&scene).await;
    one_by_one(&scene, holder, waiting).await;
    // Each of the three waiters once to begin with, and once when it was its turn.
    assert_eq!(scene.count(1, asked_in_turn) - before, 6);
}

/// It hands over when a majority has granted the lock long since, and grants it with the next request.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_slow_is_not_asked_twice() {
    let scene = Scene::quorum(3);
    let (holder, waiting) = longer_ones(&scene).await;
    for (member, way) in scene.members.iter().zip([WAY, WAY, WAY * 3]) {
        member.set(Fault::Late(way));
    }
    let before = scene.members[2].calls().len();
    let mut guard = holder;
    for next in waiting {
        (guard, _) = hand_over(&scene, guard, next).await;
        scene.pass(WAY * 4).await;
    }
    let calls = scene.members[2].calls().split_off(before);
    assert_eq!(
        calls.iter().filter(|call| asked_in_turn(call)).count(),
        3,
        "{calls:#?}"
    );
    let sealed = |call: &&Call| matches!(call, Call::Seal(..));
    assert_eq!(
        calls.iter().filter(sealed).count(),
        2,
        "once for the heirs of each that has one: {calls:#?}"
    );
    guard.release().await.unwrap();
}

/// Whoever is known to be the next is called, and nobody else: no attempt is in vain.
#[tokio::test(start_paused = true)]
async fn nobody_is_called_before_whom_somebody_waits() {
    let scene = Scene::quorum(3);
    let (ours, other) = (&scene.client, &scene.other_client());
    let clients = [ours, ours, ours, other, ours, other, ours];
    let before = scene.count(0, asked_in_turn);
    let took = hand_overs(&scene, &clients).await;
    // The second gets it from the first, which had to wait for its fence.
    let [word, call, fence] = [WAY * 2, WAY, WAY];
    assert_eq!(took, [call, fence, word, word, word, word]);
    assert_eq!(scene.count(0, asked_in_turn) - before, 6 * 2 - 1);
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn who_gave_up_is_not_called() {
    let scene = Scene::quorum(3);
    let holder = hold(&scene.client).await;
    let mut waiting = waiters(&scene, &[&scene.client; 4]).await;
    waiting.remove(1).abort();
    scene.settle().await;
    let mut guard = holder;
    let before = scene.count(0, asked_in_turn);
    for next in waiting {
        (guard, _) = hand_over(&scene, guard, next).await;
    }
    assert_eq!(scene.count(0, asked_in_turn) - before, 3);
    guard.release().await.unwrap();
    come_near(&scene).await;
    assert_nothing_left(&scene).await;
}

/// A lock that is left free is for those who poll.
#[tokio::test(start_paused = true)]
async fn nobody_is_called_to_a_lock_that_is_left_free() {
    let scene = Scene::quorum(3);
    let gap = Duration::from_millis(150);
    let quorum = quorum_of(&scene.members, &scene.ambient).foreign_gap(gap);
    let client = crate::scene::client(quorum, &scene.ambient);
    let holder = client.lock("line").acquire().await.unwrap();
    let mut waiting = waiters(&scene, &[&client; 4]).await;
    let last = waiting.pop().unwrap();
    let mut guard = holder;
    for next in waiting {
        (guard, _) = hand_over(&scene, guard, next).await;
    }
    // The lock is held in turn for longer than it is kept from those who poll.
    scene.pass(Duration::from_secs(6)).await;
    let before = scene.count(0, asked_in_turn);
    let (guard, took) = hand_over(&scene, guard, last).await;
    assert!(took >= gap, "{took:?}");
    assert_eq!(
        scene.count(0, asked_in_turn) - before,
        1,
        "its word was waited for"
    );
    guard.release().await.unwrap();
}

/// The call needs no word; where every word is lost, the lock goes on.
#[tokio::test(start_paused = true)]
async fn a_lock_that_stays_is_handed_over_without_a_word() {
    let scene = Scene::quorum(1);
    let holder = hold(&scene.client).await;
    let waiting = waiters(&scene, &[&scene.client; 4]).await;
    let mut waiting = waiting.into_iter();
    let (mut guard, _) = hand_over(&scene, holder, waiting.next().unwrap()).await;
    for next in waiting {
        // Connections end, and with them whatever would have been told.
        scene.stores[0].restart(true);
        let (next, took) = hand_over(&scene, guard, next).await;
        guard = next;
        assert!(took < Duration::from_millis(60), "{took:?}");
    }
    guard.release().await.unwrap();
}
