use std::time::Duration;

use futures_util::future::join_all;
use leasehold::Mode;
use tokio::sync::Semaphore;

use super::crowd::{Crowd, Served, alongside, in_time, let_others_run};
use crate::contract::fixture::{Fixture, inspection, now};

pub(crate) async fn w3_waiters_are_served_in_arrival_order(fixture: &Fixture) {
    const WAITERS: usize = 9;
    let Some(crowd) = Crowd::in_turn(fixture, 4) else {
        return;
    };
    let order = in_time(async |served| {
        let key = fixture.key();
        let (begin, turns) = (Semaphore::new(0), 1..=WAITERS);
        let waits = turns.clone().map(async |number| {
            begin
                .acquire_many(number as u32)
                .await
                .expect("open")
                .forget();
            served.serve(number, crowd.lock(number, &key)).await;
        });
        let one_by_one = async {
            let first = crowd.lock(0, &key).acquire().await.expect("the lock");
            for number in turns.clone() {
                begin.add_permits(number);
                crowd.until_waiting(&key, number).await;
            }
            served.freed.set(Some(now()));
            first.release().await.expect("a release");
        };
        futures_util::join!(join_all(waits), one_by_one);
        crowd.until_waiting(&key, 0).await;
    })
    .await;
    assert_eq!(order, (1..=WAITERS).collect::<Vec<_>>());
}

/// A client that does not wait in the queue.
const OUTSIDER: usize = 0;

pub(crate) async fn w3_nobody_else_gets_the_lock_before(fixture: &Fixture) {
    /// A store sometimes leaves a lock free for a moment, for clients that poll. So not every round counts.
    const ROUNDS: usize = 12;
    const KEPT_OUT: usize = 3;
    let Some(crowd) = Crowd::in_turn(fixture, 3) else {
        return;
    };
    let mut kept_out = 0;
    for _ in 0..ROUNDS {
        let order = in_time(async |served| beside_an_outsider(&crowd, served).await).await;
        let waiters_done = order.iter().rposition(|number| *number != OUTSIDER);
        let outsider = order.iter().position(|number| *number == OUTSIDER);
        kept_out += usize::from(outsider.is_none() || outsider > waiters_done);
        if kept_out == KEPT_OUT {
            return;
        }
    }
    panic!("somebody came before those who waited in {ROUNDS} rounds, except {kept_out}");
}

/// Six clients wait, while another one does not wait and asks for the lock again and again.
async fn beside_an_outsider(crowd: &Crowd<'_>, served: &Served) {
    const WAITERS: usize = 6;
    let key = crowd.fixture.key();
    let first = crowd.lock(0, &key).acquire().await.expect("the lock");
    let waits = (1..=WAITERS).map(|number| served.serve(number, crowd.lock(number, &key)));
    let all_wait = async {
        crowd.until_waiting(&key, WAITERS).await;
        served.freed.set(Some(now()));
        first.release().await.expect("a release");
    };
    let outsider = async {
        let lock = crowd.lock(1, &key).wait(Duration::ZERO);
        while served.order.borrow().len() < WAITERS {
            if let Some(guard) = lock.try_acquire().await.expect("an answer") {
                served.order.borrow_mut().push(OUTSIDER);
                guard.release().await.expect("a release");
            }
            // A store in memory answers immediately.
            let_others_run().await;
        }
    };
    futures_util::join!(join_all(waits), all_wait, outsider);
}

pub(crate) async fn w3_first_requests_at_once_keep_the_place(fixture: &Fixture) {
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        // The clients are not connected yet. Two requests of one client may open two connections.
        let Some(crowd) = Crowd::in_turn(fixture, 3) else {
            return;
        };
        let order = in_time(async |served| {
            let (key, other) = (fixture.key(), fixture.key());
            let first = crowd.lock(0, &key).acquire().await.expect("the lock");
            let early = async {
                let elsewhere = crowd.lock(1, &other).try_acquire();
                futures_util::join!(served.serve(1, crowd.lock(1, &key)), elsewhere).1
            };
            let late = async {
                crowd.until_waiting(&key, 1).await;
                served.serve(2, crowd.lock(2, &key)).await;
            };
            let holder = async {
                crowd.until_waiting(&key, 2).await;
                served.freed.set(Some(now()));
                first.release().await.expect("a release");
            };
            let (elsewhere, ..) = futures_util::join!(early, late, holder);
            drop(elsewhere.expect("an answer"));
        })
        .await;
        assert_eq!(order, [1, 2]);
    }
}

pub(crate) async fn w3_refused_waiter_is_queued_at_once(fixture: &Fixture) {
    const TRIES: usize = 10;
    const AT_ONCE: Duration = Duration::from_millis(500);
    let Some(crowd) = Crowd::in_turn(fixture, 2) else {
        return;
    };
    let mut spans = Vec::new();
    for _ in 0..TRIES {
        let (key, served) = (fixture.key(), Served::default());
        let first = crowd.lock(0, &key).acquire().await.expect("the lock");
        let wait = Box::pin(served.serve(1, crowd.lock(1, &key)));
        let began = now();
        let wait = alongside(wait, crowd.until_waiting(&key, 1)).await;
        spans.push(began.elapsed());
        let (freed, ()) = futures_util::join!(first.release(), wait);
        freed.expect("a release");
        if spans.iter().any(|span| *span < AT_ONCE) {
            return;
        }
    }
    panic!("never within {AT_ONCE:?}, but after {spans:?}");
}

pub(crate) async fn w3_a_wait_that_ended_is_passed_over(fixture: &Fixture) {
    let Some(crowd) = Crowd::in_turn(fixture, 3) else {
        return;
    };
    let order = in_time(async |served| {
        let key = fixture.key();
        let first = crowd.lock(0, &key).acquire().await.expect("the lock");
        let waits = |number| Box::pin(served.serve(number, crowd.lock(number, &key)));
        let (one, two, three) = (waits(1), waits(2), waits(3));
        let one = alongside(one, crowd.until_waiting(&key, 1)).await;
        let two = alongside(two, crowd.until_waiting(&key, 2)).await;
        let three = alongside(three, crowd.until_waiting(&key, 3)).await;
        drop(two);
        crowd.until_waiting(&key, 2).await;
        let free = async {
            served.freed.set(Some(now()));
            first.release().await.expect("a release");
        };
        futures_util::join!(one, three, free);
    })
    .await;
    assert_eq!(order, [1, 3]);
}

pub(crate) async fn w4_cancelled_waiter_leaves_the_queue(fixture: &Fixture) {
    let Some(crowd) = Crowd::in_turn(fixture, 3) else {
        return;
    };
    let key = fixture.key();
    let holder = crowd.lock(0, &key).acquire().await.expect("the lock");
    let late = crowd.lock(1, &key).wait(Duration::from_secs(1));
    let error = late.acquire().await.expect_err("a wait that is over");
    assert!(error.is_busy(), "{error}");
    crowd.until_waiting(&key, 0).await;
    let served = Served::default();
    let dropped = Box::pin(served.serve(2, crowd.lock(2, &key)));
    drop(alongside(dropped, crowd.until_waiting(&key, 1)).await);
    crowd.until_waiting(&key, 0).await;
    holder.release().await.expect("a release");
    let lock = crowd.lock(1, &key).wait(Duration::ZERO);
    let guard = lock.try_acquire().await;
    let guard = guard.expect("an answer").expect("nothing is reserved");
    guard.release().await.expect("a release");
}

pub(crate) async fn w4_reserved_lock_passes_on_when_waiter_leaves(fixture: &Fixture) {
    let Some(crowd) = Crowd::in_turn(fixture, 3) else {
        return;
    };
    for _ in 0..10 {
        let key = fixture.key();
        let served = Served::default();
        let first = crowd.lock(0, &key).acquire().await.expect("the lock");
        let leaves = Box::pin(served.serve(1, crowd.lock(1, &key)));
        let leaves = alongside(leaves, crowd.until_waiting(&key, 1)).await;
        let stays = Box::pin(served.serve(2, crowd.lock(2, &key)));
        let stays = alongside(stays, crowd.until_waiting(&key, 2)).await;
        // The release happens at the same moment: it finds the client waiting, or on its way, or gone.
        drop(leaves);
        let (freed, ()) = futures_util::join!(first.release(), stays);
        freed.expect("a release");
        assert_eq!(*served.order.borrow(), [2]);
        crowd.until_waiting(&key, 0).await;
    }
}

pub(crate) async fn h3_waiters_are_named_in_order(fixture: &Fixture) {
    let Some(crowd) = Crowd::in_turn(fixture, 3) else {
        return;
    };
    let key = fixture.key();
    let nobody = inspection(&crowd.store)
        .waiters(&key)
        .await
        .expect("an answer");
    assert!(nobody.is_empty(), "{nobody:?}");
    let holder = crowd.lock(0, &key).acquire().await.expect("the lock");
    let served = Served::default();
    let lock = |number: usize, mode| crowd.lock(number, &key).mode(mode);
    let modes = if crowd.store.guarantees().shared {
        [Mode::Exclusive, Mode::Shared, Mode::Exclusive]
    } else {
        [Mode::Exclusive; 3]
    };
    let mut waits = Vec::new();
    // The second client first.
    let order = [1, 0, 2];
    for (count, client) in order.into_iter().enumerate() {
        let wait = Box::pin(served.serve(client, lock(client, modes[count])));
        waits.push(alongside(wait, crowd.until_waiting(&key, count + 1)).await);
    }
    let waiters = inspection(&crowd.store)
        .waiters(&key)
        .await
        .expect("an answer");
    let named: Vec<_> = waiters
        .iter()
        .map(|waiter| (waiter.ticket.waiter.client(), waiter.mode))
        .collect();
    let clients = order.map(|client| crowd.clients[client].id());
    let expected: Vec<_> = clients.into_iter().zip(modes).collect();
    assert_eq!(named, expected);
    assert!(waiters.is_sorted_by_key(|waiter| waiter.ticket));
    for waiter in &waiters {
        let known = waiter.client.as_ref().map(|info| info.id);
        assert!(known.is_none_or(|id| id == waiter.ticket.waiter.client()));
    }
    let (freed, _) = futures_util::join!(holder.release(), join_all(waits));
    freed.expect("a release");
    crowd.until_waiting(&key, 0).await;
}
