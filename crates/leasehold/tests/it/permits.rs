//! Locks with permits: never too many, in turn, and on when holders die.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::store::{Attempt, Claim, Counting, Inspection as _, Permits, Store};
use leasehold::{Client, Error, ErrorKind, Fence, Guard, Key, Mode, Semaphore};
use tokio::task::JoinHandle;

use crate::scene::{Scene, TTL, claim};

const NAME: &str = "workers";

/// When clients hold permits, according to their own guards.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Entries>>);

#[derive(Clone, Default)]
struct Entries {
    inside: u32,
    most: u32,
    order: Vec<usize>,
    fences: Vec<Fence>,
}

impl Book {
    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.0.lock().expect("no panic")
    }

    fn so_far(&self) -> Entries {
        self.entries().clone()
    }

    /// Takes a permit, holds it for a while, and releases it.
    async fn works(
        self,
        number: usize,
        env: leasehold::env::Env,
        semaphore: Semaphore,
        span: Duration,
    ) -> Result<(), Error> {
        let guard = semaphore.acquire().await?;
        {
            let mut entries = self.entries();
            entries.inside += 1;
            entries.most = entries.most.max(entries.inside);
            entries.order.push(number);
            entries.fences.push(guard.fence());
        }
        env.clock.sleep_until(env.clock.now() + span).await;
        assert!(guard.is_valid(), "{:?}", guard.state());
        self.entries().inside -= 1;
        guard.release().await?;
        Ok(())
    }
}

/// Begins to wait, one after the other.
async fn line_up(
    scene: &Scene,
    clients: &[Client],
    permits: u32,
    span: Duration,
    book: &Book,
) -> Vec<JoinHandle<Result<(), Error>>> {
    let mut waiting = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let semaphore = client.semaphore(NAME, permits);
        let works = book
            .clone()
            .works(number, scene.env.clone(), semaphore, span);
        waiting.push(leasehold::store::background::spawn(works));
        scene.settle().await;
    }
    waiting
}

async fn all(waiting: Vec<JoinHandle<Result<(), Error>>>) {
    for waits in waiting {
        waits
            .await
            .expect("no panic")
            .expect("a permit, and its release");
    }
}

async fn has(client: &Client, permits: u32) -> Guard {
    let guard = client.semaphore(NAME, permits).acquire().await;
    guard.expect("a free permit")
}

fn clients(scene: &Scene, count: usize) -> Vec<Client> {
    (0..count).map(|_| scene.other_client()).collect()
}

fn key() -> Key {
    Key::new(NAME).expect("a valid name")
}

async fn assert_nothing_left(scene: &Scene) {
    scene.settle().await;
    assert_eq!(scene.memory.waiters(&key()).await.expect("an answer"), []);
    assert_eq!(scene.memory.holders(&key()).await.expect("an answer"), []);
}

#[tokio::test(start_paused = true)]
async fn permits_bound_the_holders_and_fences_grow() {
    let scene = Scene::new();
    assert_eq!(scene.client.guarantees().counting, Counting::Permits);
    let mut held: Vec<Guard> = Vec::new();
    for client in clients(&scene, 4) {
        held.push(has(&client, 4).await);
    }
    let fences: Vec<Fence> = held.iter().map(Guard::fence).collect();
    assert!(fences.is_sorted_by(|one, two| one < two), "{fences:?}");
    let workers = scene.client.semaphore(NAME, 4);
    assert!(workers.try_acquire().await.unwrap().is_none());
    assert!(
        scene
            .client
            .lock(NAME)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let holders = scene.client.holders(NAME).await.unwrap();
    assert_eq!(holders.len(), 4);
    scene.pass(TTL * 3).await;
    assert!(held.iter().all(Guard::is_valid), "they are kept");
    for guard in held {
        guard.release().await.unwrap();
    }
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn permit_waiters_are_served_in_order() {
    const SPAN: Duration = Duration::from_millis(10);
    let scene = Scene::new();
    let book = Book::default();
    let held = [has(&scene.client, 2).await, has(&scene.client, 2).await];
    let waiting = line_up(&scene, &clients(&scene, 10), 2, SPAN, &book).await;
    scene.pass(Duration::from_secs(3)).await;
    let freed = scene.now();
    for guard in held {
        guard.release().await.unwrap();
    }
    all(waiting).await;
    let took = scene.now().since(freed);
    let entries = book.so_far();
    assert_eq!(entries.order, (0..10).collect::<Vec<_>>());
    assert!(entries.fences.is_sorted(), "{:?}", entries.fences);
    assert_eq!(entries.most, 2);
    assert!(took < SPAN * 5 + Duration::from_millis(100), "{took:?}");
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn crowd_never_exceeds_the_permits() {
    for permits in [1, 2, 3, 4, 7] {
        let scene = Scene::new();
        let book = Book::default();
        let began = scene.now();
        let mut waiting = Vec::new();
        for (number, client) in clients(&scene, 8).iter().cycle().take(40).enumerate() {
            let semaphore = client.semaphore(NAME, permits);
            let span = Duration::from_millis(20 + number as u64 % 7);
            let works = book
                .clone()
                .works(number, scene.env.clone(), semaphore, span);
            waiting.push(leasehold::store::background::spawn(works));
        }
        all(waiting).await;
        let took = scene.now().since(began);
        let entries = book.so_far();
        assert_eq!(entries.order.len(), 40);
        assert_eq!(entries.most, permits);
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert_nothing_left(&scene).await;
    }
}

/// Takes all permits in claims that no client renews.
async fn held_by_the_dead(scene: &Scene, permits: u32) -> Vec<Claim> {
    let count = Permits::new(permits).expect("a number of permits");
    let mut held = Vec::new();
    for _ in count.slots() {
        let claim = claim(scene, NAME).with_mode(Mode::Permit(count));
        let granted = scene.memory.acquire(&claim).await;
        assert!(matches!(granted, Ok(Attempt::Granted(_))), "{granted:?}");
        held.push(claim);
    }
    held
}

#[tokio::test(start_paused = true)]
async fn dead_holders_free_all_permits_at_once() {
    let scene = Scene::new();
    let began = scene.now();
    held_by_the_dead(&scene, 3).await;
    let book = Book::default();
    let span = Duration::from_secs(60);
    let waiting = line_up(&scene, &clients(&scene, 5), 3, span, &book).await;
    scene
        .pass(TTL - scene.now().since(began) - Duration::from_millis(1))
        .await;
    assert_eq!(book.entries().order, [0; 0], "not before their leases end");
    scene.pass(Duration::from_millis(501)).await;
    let mut order = book.entries().order.clone();
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2]);
    all(waiting).await;
    assert_eq!(book.entries().most, 3);
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_in_the_queue_is_not_overtaken() {
    let scene = Scene::new();
    let held = [has(&scene.client, 2).await, has(&scene.client, 2).await];
    let [one, two] = [scene.other_client(), scene.other_client()];
    let writes = leasehold::store::background::spawn(one.lock(NAME).acquire());
    scene.settle().await;
    let late = leasehold::store::background::spawn(two.semaphore(NAME, 2).acquire());
    scene.settle().await;
    let [first, second] = held;
    first.release().await.unwrap();
    scene.pass(Duration::from_secs(5)).await;
    assert!(
        !late.is_finished(),
        "a permit is free, and the writer waits"
    );
    assert!(!writes.is_finished(), "a permit is held");
    second.release().await.unwrap();
    let writer = writes.await.unwrap().unwrap();
    scene.pass(Duration::from_secs(1)).await;
    assert!(!late.is_finished());
    writer.release().await.unwrap();
    late.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn different_permit_count_fails_at_once() {
    let scene = Scene::new();
    let guard = has(&scene.client, 2).await;
    let other = scene.other_client();
    let began = scene.now();
    for outcome in [
        other.semaphore(NAME, 3).acquire().await.map(drop),
        other.semaphore(NAME, 1).try_acquire().await.map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
        assert!(!error.is_retryable(), "{error}");
        assert!(
            error.to_string().contains("in use with 2 permits, not "),
            "{error}"
        );
    }
    assert!(scene.now().since(began) < Duration::from_secs(1));
    guard.release().await.unwrap();
    scene.pass(Duration::from_secs(2)).await;
    has(&other, 3).await.release().await.unwrap();
    assert_nothing_left(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn invalid_count_or_name_is_named() {
    let scene = Scene::new();
    for count in [0, 129, u32::MAX] {
        let error = scene
            .client
            .semaphore(NAME, count)
            .acquire()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(&format!("{count} permits")), "{text}");
        assert!(text.contains(NAME), "{text}");
    }
    let error = scene
        .client
        .semaphore("", 1)
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(scene.store.calls().len(), 0, "nothing was sent");
}
