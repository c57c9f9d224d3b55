use std::sync::Arc;

use leasehold::MemberSet;
use leasehold::ambient::Entropy;
use leasehold::clock::{BootInstant, WallTime};

use crate::operation::{Operation, OperationId, Outcome, Progress};
use crate::reply::{BatchReply, Notification};
use crate::request::{Request, RequestId};

/// The present instant, by the client's two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The clock that measures leases.
    pub instant: BootInstant,
    /// The wall clock, for fences only.
    pub wall: WallTime,
}

/// What the clients of a quorum agree on.
#[derive(Debug)]
pub struct Config {
    /// The members and the limits of the quorum.
    pub set: MemberSet,
    /// Whether only trusted members have a vote. Otherwise each answer counts.
    pub enforced: bool,
    /// The source of random numbers.
    pub entropy: Arc<dyn Entropy>,
}

/// The state of all operations of one client.
#[derive(Debug)]
pub struct Engine {
    config: Config,
}

impl Engine {
    /// Returns an engine whose members are not connected yet, in the order of `config.set.ids`.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// Begins an operation.
    pub fn start(&mut self, now: Now, operation: Operation) -> OperationId {
        let _ = (now, operation, &self.config);
        OperationId(0)
    }
    /// Ends an operation early. What it may have left behind is released in the background, and no
    /// outcome follows.
    pub fn cancel(&mut self, now: Now, id: OperationId) {
        let _ = (now, id);
    }

    /// The driver connected to the member, authenticated, and listens for notifications.
    pub fn handle_connect(&mut self, now: Now, member: usize) {
        let _ = (now, member);
    }
    /// Takes in the replies to a batch.
    pub fn handle_replies(&mut self, now: Now, member: usize, batch: BatchReply) {
        let _ = (now, member, batch);
    }
    /// Takes in a notification.
    pub fn handle_notification(&mut self, now: Now, member: usize, notification: Notification) {
        let _ = (now, member, notification);
    }
    /// The connection broke, or could not be made: requests without a reply may have taken effect.
    pub fn handle_disconnect(&mut self, now: Now, member: usize, error: leasehold::Error) {
        let _ = (now, member, error);
    }
    /// Takes in that time passed. Call it at [`Engine::next_timeout`] or later.
    pub fn handle_timeout(&mut self, now: Now) {
        let _ = now;
    }

    /// Returns the next request to send. The driver calls this until it returns `None`.
    pub fn poll_transmit(&mut self) -> Option<(usize, RequestId, Request)> {
        None
    }
    /// Returns the next event of an operation. The driver calls this until it returns `None`.
    pub fn poll_event(&mut self) -> Option<(OperationId, Result<Outcome, Progress>)> {
        None
    }
    /// Returns when [`Engine::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<BootInstant> {
        None
    }
    /// Returns whether the engine has nothing left to send or to wait for, renewals aside.
    pub fn is_idle(&self) -> bool {
        true
    }
}
