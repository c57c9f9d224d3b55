//! Locks with permits: never too many, in turn, and on when holders die.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::store::{LockRequest, Permits};
use leasehold::{Client, Error, ErrorKind, Fence, Guard, Key, Mode, Semaphore};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, TTL, attempt, request};

const NAME: &str = "workers";

/// When clients hold permits, according to their own guards.
#[derive(Clone, Default)]
struct HoldLog(Arc<Mutex<Entries>>);

#[derive(Clone, Default)]
struct Entries {
    inside: u32,
    most: u32,
    order: Vec<usize>,
    fences: Vec<Fence>,
}

impl HoldLog {
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
    fixture: &Fixture,
    clients: &[Client],
    permits: u32,
    span: Duration,
    log: &HoldLog,
) -> Vec<JoinHandle<Result<(), Error>>> {
    let mut waiting = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let semaphore = client.semaphore(NAME, permits);
        let works = log
            .clone()
            .works(number, fixture.env.clone(), semaphore, span);
        waiting.push(leasehold::store::background::spawn(works));
        fixture.settle().await;
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

fn clients(fixture: &Fixture, count: usize) -> Vec<Client> {
    (0..count).map(|_| fixture.other_client()).collect()
}

fn key() -> Key {
    Key::new(NAME).expect("a valid name")
}

async fn assert_nothing_left(fixture: &Fixture) {
    fixture.settle().await;
    assert_eq!(fixture.waiters(&key()).await, []);
    assert_eq!(fixture.holders(&key()).await, []);
}

#[tokio::test(start_paused = true)]
async fn permits_bound_the_holders_and_fences_grow() {
    let fixture = Fixture::new();
    assert!(fixture.client.guarantees().permits);
    let mut held: Vec<Guard> = Vec::new();
    for client in clients(&fixture, 4) {
        held.push(has(&client, 4).await);
    }
    let fences: Vec<Fence> = held.iter().map(Guard::fence).collect();
    assert!(fences.is_sorted_by(|one, two| one < two), "{fences:?}");
    let workers = fixture.client.semaphore(NAME, 4);
    assert!(workers.try_acquire().await.unwrap().is_none());
    assert!(
        fixture
            .client
            .lock(NAME)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let holders = fixture.client.holders(NAME).await.unwrap();
    assert_eq!(holders.len(), 4);
    fixture.pass(TTL * 3).await;
    assert!(held.iter().all(Guard::is_valid), "they are kept");
    for guard in held {
        guard.release().await.unwrap();
    }
    assert_nothing_left(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn permit_waiters_are_served_in_order() {
    const SPAN: Duration = Duration::from_millis(10);
    let fixture = Fixture::new();
    let log = HoldLog::default();
    let held = [has(&fixture.client, 2).await, has(&fixture.client, 2).await];
    let waiting = line_up(&fixture, &clients(&fixture, 10), 2, SPAN, &log).await;
    fixture.pass(Duration::from_secs(3)).await;
    let freed = fixture.now();
    for guard in held {
        guard.release().await.unwrap();
    }
    all(waiting).await;
    let took = fixture.now().since(freed);
    let entries = log.so_far();
    assert_eq!(entries.order, (0..10).collect::<Vec<_>>());
    assert!(entries.fences.is_sorted(), "{:?}", entries.fences);
    assert_eq!(entries.most, 2);
    assert!(took < SPAN * 5 + Duration::from_millis(100), "{took:?}");
    assert_nothing_left(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn crowd_never_exceeds_the_permits() {
    for permits in [1, 2, 3, 4, 7] {
        let fixture = Fixture::new();
        let log = HoldLog::default();
        let began = fixture.now();
        let mut waiting = Vec::new();
        for (number, client) in clients(&fixture, 8).iter().cycle().take(40).enumerate() {
            let semaphore = client.semaphore(NAME, permits);
            let span = Duration::from_millis(20 + number as u64 % 7);
            let works = log
                .clone()
                .works(number, fixture.env.clone(), semaphore, span);
            waiting.push(leasehold::store::background::spawn(works));
        }
        all(waiting).await;
        let took = fixture.now().since(began);
        let entries = log.so_far();
        assert_eq!(entries.order.len(), 40);
        assert_eq!(entries.most, permits);
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert_nothing_left(&fixture).await;
    }
}

/// Takes all permits in requests that no client renews.
async fn held_by_the_dead(fixture: &Fixture, permits: u32) -> Vec<LockRequest> {
    let count = Permits::new(permits).expect("a number of permits");
    let mut held = Vec::new();
    for _ in count.slots() {
        let request = request(fixture, NAME).with_mode(Mode::Permit(count));
        let granted = attempt(&*fixture.apart, &request).await;
        assert!(granted.is_ok(), "{granted:?}");
        held.push(request);
    }
    held
}

#[tokio::test(start_paused = true)]
async fn dead_holders_free_all_permits_at_once() {
    let fixture = Fixture::new();
    let began = fixture.now();
    held_by_the_dead(&fixture, 3).await;
    let log = HoldLog::default();
    let span = Duration::from_secs(60);
    let waiting = line_up(&fixture, &clients(&fixture, 5), 3, span, &log).await;
    fixture
        .pass(TTL - fixture.now().since(began) - Duration::from_millis(1))
        .await;
    assert_eq!(log.entries().order, [0; 0], "not before their leases end");
    fixture.pass(Duration::from_millis(501)).await;
    let mut order = log.entries().order.clone();
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2]);
    all(waiting).await;
    assert_eq!(log.entries().most, 3);
    assert_nothing_left(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_in_the_queue_is_not_overtaken() {
    let fixture = Fixture::new();
    let held = [has(&fixture.client, 2).await, has(&fixture.client, 2).await];
    let [one, two] = [fixture.other_client(), fixture.other_client()];
    let writes = leasehold::store::background::spawn(one.lock(NAME).acquire());
    fixture.settle().await;
    let late = leasehold::store::background::spawn(two.semaphore(NAME, 2).acquire());
    fixture.settle().await;
    let [first, second] = held;
    first.release().await.unwrap();
    fixture.pass(Duration::from_secs(5)).await;
    assert!(
        !late.is_finished(),
        "a permit is free, and the writer waits"
    );
    assert!(!writes.is_finished(), "a permit is held");
    second.release().await.unwrap();
    let writer = writes.await.unwrap().unwrap();
    fixture.pass(Duration::from_secs(1)).await;
    assert!(!late.is_finished());
    writer.release().await.unwrap();
    late.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn different_permit_count_fails_at_once() {
    let fixture = Fixture::new();
    let guard = has(&fixture.client, 2).await;
    let other = fixture.other_client();
    let began = fixture.now();
    for outcome in [
        other.semaphore(NAME, 3).acquire().await.map(drop),
        other.semaphore(NAME, 1).try_acquire().await.map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
        assert!(!error.is_retryable(), "{error}");
        // The memory store names itself in no error.
        assert!(error.store().is_some(), "{error:?}");
        assert!(
            error.to_string().contains("in use with 2 permits, not "),
            "{error}"
        );
    }
    assert!(fixture.now().since(began) < Duration::from_secs(1));
    guard.release().await.unwrap();
    fixture.pass(Duration::from_secs(2)).await;
    has(&other, 3).await.release().await.unwrap();
    assert_nothing_left(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn invalid_count_or_name_is_named() {
    let fixture = Fixture::new();
    for count in [0, 129, u32::MAX] {
        let error = fixture
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
    let error = fixture
        .client
        .semaphore("", 1)
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(fixture.store.calls().len(), 0, "nothing was sent");
}
