//! The obligations while the network fails.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::{AcquireError, Grant, LockRequest, Progress};
use leasehold::{Client, Effect, Error};

use super::cancellation::MANY;
use super::fixture::{
    Fixture, LONG, OpenStore, TIMEOUT, free, granted, granted_in_time, released, until,
};
use crate::faults::{Cut, NetworkFault, Proxy};

/// Longer than any request needs on the same machine.
const DELAY: Duration = Duration::from_millis(300);

pub(crate) async fn a7_attempt_in_a_broken_network_leaves_nothing(fixture: &Fixture) {
    let faults = [
        NetworkFault::Mute,
        NetworkFault::Frozen,
        NetworkFault::HalfOpen,
        NetworkFault::SlowRequests(DELAY),
    ];
    for fault in faults {
        for waits in [false, true] {
            let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
            // Connects before the network breaks.
            free(fixture, &store, &fixture.key()).await;
            let holder = fixture.request(&key, LONG);
            if waits {
                granted(&other, &holder).await;
            }
            fixture.set_network(fault);
            let request = Arc::new(fixture.request(&key, LONG).waiting(waits));
            let progress = Progress::new();
            // Drops the attempt while its request is on the way, or while it waits.
            let pause = SystemClock.sleep_until(SystemClock.now() + DELAY / 2);
            tokio::select! {
                _ = store.acquire_in_session(&request, &progress) => {}
                () = pause => {}
            }
            fixture.set_network(NetworkFault::None);
            repeat_release(fixture, &store, &request).await;
            if waits {
                repeat_release(fixture, &other, &holder).await;
            }
            let observer = fixture.open();
            let (next, _) = granted_in_time(fixture, &observer, &key).await;
            released(&observer, &next).await;
        }
    }
}

/// The holder and the waiter are two clients, and then one: a store may grant a lock to a waiter of the client that
/// releases it. That client waits twice, because its first wait may begin to listen, and then ask again.
pub(crate) async fn a11_lease_counts_from_its_request(fixture: &Fixture) {
    let (store, other) = (fixture.open(), fixture.open());
    for store in [&store, &other] {
        free(fixture, store, &fixture.key()).await;
    }
    let is_old = |grant: &Grant| {
        let age = SystemClock.now().since(grant.term.since);
        assert!(age >= DELAY.mul_f64(0.95), "{age:?} old: {grant:?}");
    };
    fixture.set_network(NetworkFault::SlowAnswers(DELAY));
    for waiting in [&other, &store, &store] {
        let key = fixture.key();
        let first = fixture.request_of(store.client(), &key, LONG);
        is_old(&store.acquire(&first).await.expect("the lock"));
        let waiter = fixture.request_of(waiting.client(), &key, LONG);
        let (waiter, progress) = (waiter.waiting(true), Progress::new());
        let freeing = async {
            until(fixture, "a report", async || progress.last().is_some()).await;
            released(&store, &first).await;
        };
        let granting = async {
            let grant = waiting.acquire_with(&waiter, &progress).await;
            let grant = grant.expect("granted once it was free");
            is_old(&grant);
            grant
        };
        let (grant, ()) = futures_util::join!(granting, freeing);
        let owner = grant.owner.unwrap_or(waiter.owner);
        released(waiting, &waiter.with_owner(owner)).await;
    }
}

pub(crate) async fn a10_cut_attempt_leaves_what_it_says(fixture: &Fixture) {
    for cut in [Cut::BeforeRequest, Cut::BeforeAnswer] {
        cut_each_request(fixture, cut, async |store, request, cut_now| {
            cut_now();
            match store.acquire(request).await {
                Err(AcquireError::Failed(error)) if error.effect() == Effect::None => {}
                Ok(_) | Err(AcquireError::Failed(_)) => {
                    repeat_release(fixture, store, request).await;
                }
                Err(busy) => panic!("{busy:?}"),
            }
        })
        .await;
    }
}

pub(crate) async fn f4_cut_release_frees_the_lock(fixture: &Fixture) {
    for cut in [Cut::BeforeRequest, Cut::BeforeAnswer] {
        cut_each_request(fixture, cut, async |store, request, cut_now| {
            granted(store, request).await;
            cut_now();
            repeat_release(fixture, store, request).await;
            in_time("a flush", store.flush()).await;
        })
        .await;
    }
}

pub(crate) async fn f5_release_ends_though_no_answer_comes(fixture: &Fixture) {
    for fault in [NetworkFault::Mute, NetworkFault::Frozen] {
        let (store, key) = (fixture.open(), fixture.key());
        let request = fixture.request(&key, LONG);
        granted(&store, &request).await;
        fixture.set_network(fault);
        in_time("a release", store.release(&request)).await;
        fixture.set_network(NetworkFault::None);
        repeat_release(fixture, &store, &request).await;
        free(fixture, &fixture.open(), &key).await;
    }
}

/// How late a call may end on a machine that runs many tests.
const LATE_MAX: Duration = Duration::from_secs(1);

/// One client has a connection to the server before that fails, and one comes later.
pub(crate) async fn w7_one_bad_server_delays_no_call(fixture: &Fixture) {
    let has_others = fixture.network.len() >= 3;
    let wait = Duration::from_secs(if has_others { 5 } else { 1 });
    let faults = [
        NetworkFault::Frozen,
        NetworkFault::HalfOpen,
        NetworkFault::Refusing,
        NetworkFault::SlowAnswers(wait * 2),
    ];
    for fault in faults {
        for bad in &fixture.network {
            let connected = Client::new(fixture.place());
            pass(&connected, fixture, TIMEOUT).await.expect("a lock");
            bad.set(fault);
            for client in [connected, Client::new(fixture.place())] {
                let begun = SystemClock.now();
                let passed = pass(&client, fixture, wait).await;
                let took = SystemClock.now().since(begun);
                assert!(took < wait + LATE_MAX, "{fault:?}: {took:?}, {passed:?}");
                if has_others {
                    passed.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
                }
            }
            bad.set(NetworkFault::None);
        }
    }
}

/// Takes and drops a lock of its own.
async fn pass(client: &Client, fixture: &Fixture, wait: Duration) -> Result<(), Error> {
    let lock = client.lock(fixture.key().as_str()).wait(wait);
    lock.acquire().await.map(drop)
}

/// Repeats `work` on a lock of its own and cuts another one of its requests each time, until it has no more. Each
/// time the lock is then free.
async fn cut_each_request(
    fixture: &Fixture,
    cut: Cut,
    work: impl AsyncFn(&OpenStore, &LockRequest, &dyn Fn()),
) {
    let network = &fixture.network;
    let observer = fixture.open();
    for request in 1..MANY as u64 {
        let (store, key) = (fixture.open(), fixture.key());
        let cut_now = || network.iter().for_each(|proxy| proxy.cut_at(request, cut));
        work(&store, &fixture.request(&key, LONG), &cut_now).await;
        let was_cut = network.iter().map(Proxy::has_cut).fold(false, |a, b| a | b);
        let (next, _) = granted_in_time(fixture, &observer, &key).await;
        released(&observer, &next).await;
        if !was_cut {
            assert!(request > 1, "nothing was sent");
            return;
        }
    }
    panic!("still sending after {MANY} requests");
}

pub(crate) async fn f3_attempt_that_arrives_after_its_release_is_void(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    free(fixture, &store, &fixture.key()).await;
    let network = &fixture.network;
    network.iter().for_each(Proxy::hold_requests);
    let (request, sent) = (Arc::new(fixture.request(&key, LONG)), fixture.requests());
    let progress = Progress::new();
    tokio::select! {
        answer = store.acquire_in_session(&request, &progress) => panic!("{answer:?}"),
        () = until(fixture, "a request", async || fixture.requests() > sent) => {}
    }
    // The release takes another connection.
    network.iter().for_each(Proxy::close_held);
    repeat_release(fixture, &store, &request).await;
    network.iter().for_each(Proxy::deliver_requests);
    until(fixture, "the request has arrived", async || {
        !network.iter().any(Proxy::holds_requests)
    })
    .await;
    free(fixture, &fixture.open(), &key).await;
}

/// Releases as a client does: until the store answers. Only a release that was answered promises anything.
async fn repeat_release(fixture: &Fixture, store: &OpenStore, request: &LockRequest) {
    let is_answered = async || store.release(request).await.is_ok();
    in_time("a release", until(fixture, "a release", is_answered)).await;
}

/// Waits for something whose outcome does not matter.
async fn in_time(what: &str, work: impl Future) {
    let ended = within(&SystemClock, SystemClock.now() + TIMEOUT, work).await;
    assert!(ended.is_some(), "{what}: not within {TIMEOUT:?}");
}
