use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use leasehold::store::Order;
use leasehold::{Client, Key, Lock};

use crate::contract::fixture::{Fixture, LONG, OpenStore, TIMEOUT, now, until};

/// How long a store reserves a lock at least for a waiter whose turn it is.
const RESERVATION: Duration = Duration::from_secs(1);

/// Some clients, each with its own connection to the store.
pub(in crate::contract) struct Crowd<'a> {
    pub(in crate::contract) fixture: &'a Fixture,
    /// For inspection only.
    pub(in crate::contract) store: OpenStore,
    pub(in crate::contract) clients: Vec<Client>,
}

impl<'a> Crowd<'a> {
    pub(in crate::contract) fn new(fixture: &'a Fixture, clients: usize) -> Self {
        let client = |_| Client::new(fixture.open());
        Self {
            fixture,
            store: fixture.open(),
            clients: (0..clients).map(client).collect(),
        }
    }

    /// Returns a crowd that the store serves in turn. If the store promises no order, prints a notice and
    /// returns `None`.
    pub(in crate::contract) fn in_turn(fixture: &'a Fixture, clients: usize) -> Option<Self> {
        let crowd = Self::new(fixture, clients);
        let order = crowd.store.guarantees().order;
        if order == Order::Fifo {
            return Some(crowd);
        }
        #[expect(clippy::print_stderr, reason = "says which test has nothing to test")]
        {
            let store = crowd.store.store().to_string();
            eprintln!("{store} is {order:?}: {} is left out", fixture.name());
        }
        None
    }

    pub(in crate::contract) fn lock(&self, client: usize, key: &Key) -> Lock {
        let client = &self.clients[client % self.clients.len()];
        client.lock(key).ttl(LONG).wait(TIMEOUT * 2)
    }

    /// Returns the number of waiters in the queue; 0 if the store has no queue or does not show it.
    async fn waiting(&self, key: &Key) -> usize {
        let Some(inspection) = self.store.inspection() else {
            return 0;
        };
        inspection.waiters(key).await.expect("an answer").len()
    }

    pub(in crate::contract) async fn until_waiting(&self, key: &Key, count: usize) {
        let what = format!("{count} wait");
        until(self.fixture, &what, async || {
            self.waiting(key).await == count
        })
        .await;
    }
}

/// The order in which clients got a lock.
#[derive(Debug, Default)]
pub(in crate::contract) struct Served {
    pub(in crate::contract) order: RefCell<Vec<usize>>,
    pub(in crate::contract) freed: Cell<Option<Instant>>,
    /// The longest time from a release to the next grant.
    longest: Cell<Duration>,
}

impl Served {
    /// Waits for the lock, holds it, and frees it.
    pub(in crate::contract) async fn serve(&self, number: usize, lock: Lock) {
        let guard = lock.acquire().await.expect("the lock");
        if let Some(freed) = self.freed.get() {
            self.longest.set(self.longest.get().max(freed.elapsed()));
        }
        self.order.borrow_mut().push(number);
        self.freed.set(Some(now()));
        guard.release().await.expect("a release");
    }

    /// Whether each waiter came before its reservation can have lapsed. If the machine stalled, others may
    /// have come first.
    fn was_in_time(&self) -> bool {
        self.longest.get() < RESERVATION.mul_f64(0.8)
    }
}

/// Repeats `run` until the machine did not hold it up. Returns the order in which the waiters were served.
pub(in crate::contract) async fn in_time(run: impl AsyncFn(&Served)) -> Vec<usize> {
    let began = now();
    while began.elapsed() < TIMEOUT {
        let served = Served::default();
        run(&served).await;
        if served.was_in_time() {
            return served.order.into_inner();
        }
    }
    panic!("never without a pause of {RESERVATION:?}, for {TIMEOUT:?}")
}

/// Polls `wait`, which must not end, until `until` has ended. Returns `wait`.
pub(in crate::contract) async fn alongside<W: Future<Output = ()> + Unpin>(
    wait: W,
    until: impl Future<Output = ()>,
) -> W {
    match select(wait, std::pin::pin!(until)).await {
        Either::Right(((), wait)) => wait,
        Either::Left(_) => panic!("granted while it was held"),
    }
}

/// Yields once to the other futures of the task.
pub(in crate::contract) async fn let_others_run() {
    let mut ran = false;
    poll_fn(|context| {
        if std::mem::replace(&mut ran, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
