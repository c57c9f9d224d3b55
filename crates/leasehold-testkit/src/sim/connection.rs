use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::gate::Gate;
use crate::virtual_time::lock;

/// One connection of a client to a server: what is sent on it arrives in order, or not at all.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    broken: Gate,
    /// Something was sent on it that may have arrived.
    used: AtomicBool,
    /// The server knows it no more: what is still on its way is not carried out.
    reset: AtomicBool,
    /// The client's end of it has come to the server.
    closed: AtomicBool,
    latest: Mutex<Latest>,
}

/// The latest arrivals so far: nothing overtakes them.
#[derive(Debug, Default)]
struct Latest {
    request: Duration,
    reply: Duration,
    stray: Duration,
    /// Nothing arrives any more.
    ended: bool,
}

impl Connection {
    /// One that is there from `opens` on.
    pub(crate) fn new(number: u64, opens: Duration) -> Self {
        Self {
            number,
            broken: Gate::new(false),
            used: AtomicBool::new(false),
            reset: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            latest: Mutex::new(Latest {
                request: opens,
                ..Latest::default()
            }),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn break_off(&self) {
        self.broken.open();
    }

    /// Breaks it off from the server's side.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
        self.break_off();
    }

    pub(crate) fn was_reset(&self) -> bool {
        self.reset.load(Ordering::Acquire)
    }

    /// Tells the server that the client's end of it is shut.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the server takes it for a good one: also while nobody is at its other end any more,
    /// as long as nothing said so.
    pub(crate) fn stands_at_server(&self) -> bool {
        !self.was_reset() && !self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_open()
    }

    pub(crate) async fn broken(&self) {
        self.broken.pass().await;
    }

    pub(crate) fn use_it(&self) {
        self.used.store(true, Ordering::Release);
    }

    /// Whether something that was sent on it may have arrived.
    pub(crate) fn was_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// Loses all that is sent from now on. `false` if that is so already.
    pub(crate) fn end(&self) -> bool {
        !std::mem::replace(&mut lock(&self.latest).ended, true)
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.latest).ended
    }

    /// When a request arrives that would take until `at` by itself.
    pub(crate) fn next_request(&self, at: Duration) -> Duration {
        in_order(&mut lock(&self.latest).request, at)
    }

    /// When a reply arrives, or a hint, that would take until `at` by itself.
    pub(crate) fn next_reply(&self, at: Duration) -> Duration {
        in_order(&mut lock(&self.latest).reply, at)
    }

    /// When a request arrives that outlived its connection.
    pub(crate) fn next_stray(&self, at: Duration) -> Duration {
        in_order(&mut lock(&self.latest).stray, at)
    }
}

fn in_order(latest: &mut Duration, at: Duration) -> Duration {
    *latest = at.max(*latest + Duration::from_millis(1));
    *latest
}
