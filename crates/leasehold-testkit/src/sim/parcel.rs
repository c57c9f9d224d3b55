use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use super::connection::Connection;
use super::request::{Answer, Request};
use super::wire::Wire;

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) from: ReturnAddress,
    pub(crate) request: Request,
    pub(crate) reply: Option<oneshot::Sender<Reply>>,
    pub(crate) repeated: bool,
}

/// Where the reply goes.
#[derive(Clone, Debug)]
pub(crate) struct ReturnAddress {
    pub(crate) client: usize,
    pub(crate) connection: Arc<Connection>,
    /// Wires know their server, so it must not keep them alive.
    pub(crate) wire: Weak<Wire>,
}

/// An answer, and when it is there.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) arrives: Duration,
}

impl ReturnAddress {
    pub(crate) fn new(wire: &Arc<Wire>, connection: &Arc<Connection>) -> Self {
        Self {
            client: wire.client(),
            connection: Arc::clone(connection),
            wire: Arc::downgrade(wire),
        }
    }
}

impl Parcel {
    /// It was carried out before, or belongs to a connection that was given up.
    pub(crate) fn is_stray(&self) -> bool {
        self.repeated || self.from.connection.is_broken()
    }

    /// Sends the answer back, if anybody waits for it and it does not get lost.
    pub(crate) fn answer(self, answer: Answer) {
        let Some(reply) = self.reply else { return };
        let wire = self.from.wire.upgrade();
        let arrives = wire.and_then(|wire| wire.way_back(&self.from.connection));
        if let Some(arrives) = arrives {
            // Nobody waits any more: the answer is lost.
            let _ = reply.send(Reply { answer, arrives });
        }
    }
}
