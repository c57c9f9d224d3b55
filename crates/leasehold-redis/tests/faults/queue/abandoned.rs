//! Who does not want to wait any more is soon out of every queue.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold::{Client, Error, Guard};
use leasehold_testkit::faults::{Proxy, Weather};
use leasehold_testkit::servers::RedisServer;

use super::scene::{Scene, members, queued, quorum};
use super::{LOCK, TTL, note};

const WAITS: usize = 20;

/// What a slow member needs for each answer: less than it may take.
const SLOW: Duration = Duration::from_millis(300);

/// Sooner than what is forgotten ends by itself.
const SOON: Duration = Duration::from_secs(5);

type Waiting = Pin<Box<dyn Future<Output = Result<Guard, Error>>>>;

/// The futures are dropped, and the client lives.
pub(super) fn waits(count: usize) {
    let abandoned = Abandoned::begin(count);
    let client = abandoned.client.clone();
    abandoned.end("waits dropped", |client, waits| {
        drop(waits);
        drop(client);
    });
    drop(client);
}

/// The client is dropped with them.
pub(super) fn client(count: usize) {
    Abandoned::begin(count).end("client dropped", |client, waits| {
        drop(client);
        drop(waits);
    });
}

/// Waits for a lock that somebody else holds, through paths of their own.
struct Abandoned {
    scene: Scene,
    paths: Vec<Proxy>,
    holder: leasehold::blocking::Client,
    held: leasehold::blocking::Guard,
    client: Client,
    waits: Vec<Waiting>,
}

impl Abandoned {
    fn begin(count: usize) -> Self {
        let scene = Scene::of(count);
        let holder = scene.client();
        let held = scene.hold(&holder);
        let paths: Vec<Proxy> = scene
            .servers
            .iter()
            .map(|server| Proxy::to(server.port()))
            .collect();
        let client = Client::new(quorum(&members(paths.iter().map(Proxy::port))));
        let mut abandoned = Self {
            scene,
            paths,
            holder,
            held,
            client,
            waits: Vec::new(),
        };
        // A server that has never had a waiter leave must be told first how that is done.
        abandoned.wait();
        abandoned.waits.clear();
        abandoned.scene.await_queued(0);
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
        self.scene.await_queued(WAITS);
    }

    fn end(self, how: &str, give_up: impl FnOnce(Client, Vec<Waiting>)) {
        // Some of them are asking when the answers begin to be late.
        if let [_, slow, ..] = &*self.paths {
            slow.set(Weather::SlowAnswers(SLOW));
        }
        let count = self.paths.len();
        let begun = SystemClock.now();
        give_up(self.client, self.waits);
        let end = begun + SOON;
        let gone = |server: &RedisServer| queued(server) == 0;
        leasehold_testkit::servers::until("they are out of every queue", || {
            let all = self.scene.servers.iter().all(gone);
            assert!(all || SystemClock.now() < end, "{}", self.scene.tell());
            all
        });
        let span = SystemClock.now().since(begun);
        note(&format!(
            "{count} servers, {how}: out of every queue after {span:?}"
        ));
        let released = self.held.release();
        assert!(released.is_ok(), "{released:?}");
        self.scene.await_nothing_left();
        drop(self.holder);
    }
}
