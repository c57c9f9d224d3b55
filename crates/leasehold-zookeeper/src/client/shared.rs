//! What the two sides of a connection share and pass to each other.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::clock::BootInstant;
use tokio::sync::oneshot;

use super::leader_clock::LeaderClock;
use super::message::Reach;

/// What was agreed with a server.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) session: i64,
    pub(crate) timeout: Duration,
    pub(crate) server: String,
    /// When the client asked for the session.
    pub(crate) asked: BootInstant,
}

/// What the callers share with the task.
#[derive(Debug)]
pub(super) struct Shared {
    /// The callers that wait for changes, by the path of the node. `None` once the connection is closed.
    pub(super) watches: Mutex<Option<HashMap<String, Vec<oneshot::Sender<()>>>>>,
    pub(super) leader_clock: Mutex<LeaderClock>,
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) code: i32,
    pub(super) body: Vec<u8>,
    pub(super) reach: Reach,
    pub(super) sent: BootInstant,
    pub(super) answer: Option<oneshot::Sender<Reply>>,
}

/// What came back for a request.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: i32,
    pub(super) body: Vec<u8>,
    /// Until when the session lives at least, if this answer proves something.
    pub(super) lives_until: Option<BootInstant>,
}
