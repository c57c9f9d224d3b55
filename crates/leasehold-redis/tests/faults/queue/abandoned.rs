//! A waiter that gives up is soon out of every queue.

use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold::{Client, Error, Guard};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::until;

use super::fixture::{Fixture, members, queued, store};
use super::{LOCK, TTL, note};

const WAITS: usize = 20;
const MEMBERS: usize = 5;

/// How long a slow member takes for each answer: less than its limit.
const SLOW: Duration = Duration::from_millis(300);

/// Sooner than abandoned entries end by themselves.
const SOON: Duration = Duration::from_secs(5);

type Waiting = Pin<Box<dyn Future<Output = Result<Guard, Error>>>>;

/// The futures are dropped, and the client stays.
pub(super) fn waits(count: usize) {
    let abandoned = Abandoned::begin(count);
    let client = abandoned.client.clone();
    abandoned.end("waits dropped", |client, waits| {
        drop(waits);
        drop(client);
    });
    drop(client);
}

/// The client is dropped together with them.
pub(super) fn client(count: usize) {
    Abandoned::begin(count).end("client dropped", |client, waits| {
        drop(client);
        drop(waits);
    });
}

/// A member that is stopped meanwhile cannot be notified. It must not reserve the lock for them later.
pub(super) fn waits_while_a_member_stands_still() {
    let mut abandoned = Abandoned::begin(MEMBERS);
    abandoned.fixture.servers[0].freeze();
    abandoned.waits.clear();
    let begun = SystemClock.now();
    await_gone(&abandoned.fixture, 1..MEMBERS);
    let span = SystemClock.now().since(begun);
    abandoned.fixture.servers[0].thaw();
    let Abandoned {
        mut fixture, held, ..
    } = abandoned;
    let mut host = fixture.host();
    host.wait(1);
    until("somebody waits behind them", || {
        fixture.servers.iter().all(|server| queued(server) > 0)
    });
    let left = queued(&fixture.servers[0]) - 1;
    let next = fixture.time_from_release(held);
    note(&format!(
        "{MEMBERS} servers, waits dropped while one stands still: out of the other queues after \
         {span:?}, {left} left there, next grant {next:?} after the release"
    ));
    fixture.await_nothing_left();
    host.finish();
    fixture.assert_well();
}

/// Waits for a lock that another client holds, through paths of their own.
struct Abandoned {
    fixture: Fixture,
    paths: Vec<Proxy>,
    holder: leasehold::blocking::Client,
    held: leasehold::blocking::Guard,
    client: Client,
    waits: Vec<Waiting>,
}

impl Abandoned {
    fn begin(count: usize) -> Self {
        let fixture = Fixture::of(count);
        let holder = fixture.client();
        let held = fixture.hold(&holder);
        let paths: Vec<Proxy> = fixture
            .servers
            .iter()
            .map(|server| Proxy::to(server.port()))
            .collect();
        let client = Client::new(store(&members(paths.iter().map(Proxy::port))));
        let mut abandoned = Self {
            fixture,
            paths,
            holder,
            held,
            client,
            waits: Vec::new(),
        };
        // A server where no waiter has left before must first load the script for it.
        abandoned.wait();
        abandoned.waits.clear();
        abandoned.fixture.await_queued(0);
        abandoned.wait();
        abandoned
    }

    fn wait(&mut self) {
        for _ in 0..WAITS {
            let lock = self.client.lock(LOCK).ttl(TTL);
            let mut waiting: Waiting = Box::pin(lock.acquire());
            let polled = pin!(&mut waiting).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending), "somebody else holds it");
            self.waits.push(waiting);
        }
        self.fixture.await_queued(WAITS);
    }

    fn end(self, how: &str, give_up: impl FnOnce(Client, Vec<Waiting>)) {
        // Some of them are asking when the answers start to be late.
        if let [_, slow, ..] = &*self.paths {
            slow.set(NetworkFault::SlowAnswers(SLOW));
        }
        let count = self.paths.len();
        let begun = SystemClock.now();
        give_up(self.client, self.waits);
        await_gone(&self.fixture, 0..count);
        let span = SystemClock.now().since(begun);
        note(&format!(
            "{count} servers, {how}: out of every queue after {span:?}"
        ));
        let released = self.held.release();
        assert!(released.is_ok(), "{released:?}");
        self.fixture.await_nothing_left();
        drop(self.holder);
    }
}

/// Waits until the queues of these members are empty.
fn await_gone(fixture: &Fixture, members: Range<usize>) {
    let end = SystemClock.now() + SOON;
    until("they are out of the queues", || {
        let gone = members
            .clone()
            .all(|member| queued(&fixture.servers[member]) == 0);
        assert!(gone || SystemClock.now() < end, "{}", fixture.tell());
        gone
    });
}
