//! Draws fences: when it is the turn of a request, or in advance.
//!
//! A draw in advance saves a round trip. The request draws before it knows whether it is its turn, and looks at the queue
//! and then at the counter afterwards. The fence counts if nothing is ahead in that queue, and the counter still shows
//! this draw. Earlier holders were gone before the counter was read, so they drew before this request and have smaller
//! fences. Otherwise the node keeps its position, and the request draws again in its turn.

use leasehold::clock::WallTime;
use leasehold::store::Grant;
use leasehold::{Error, Fence};

use super::attempt::{Acquire, Step};
use super::looks::Counter;
use super::node_data::NodeData;
use super::questions::term;
use super::records::wall;
use super::refusal::refused;
use crate::client::{
    self, Answer, Batch, Code, Connection, Effects, Lifetime, Op, Outcome, Pending,
};
use crate::queue::{Kind, Node, fences};

/// A fence to draw.
pub(super) struct Draw {
    pub(super) fence: Fence,
    text: String,
    /// The version that the counter must have; `None` if there must be no counter.
    version: Option<i32>,
}

/// A fence that was drawn in advance.
pub(super) struct Drawn {
    grant: Grant,
    /// The number of the transaction.
    by: Option<i64>,
}

impl Drawn {
    /// Returns the grant of a request that found nothing ahead of it, unless another request has drawn since.
    pub(super) fn if_last(self, counter: Option<Counter>) -> Option<Grant> {
        (self.by? == counter?.drawn_by).then_some(self.grant)
    }
}

impl Acquire<'_> {
    /// Returns a draw in advance; `None` if it would probably fail.
    pub(super) fn draw_ahead(&self, connection: &Connection) -> Option<Draw> {
        if self.kind != Kind::Exclusive {
            return None;
        }
        let proposal = self.known_proposal(connection)?;
        let (path, session) = (&self.paths.fence, connection.session);
        let (fence, version) = self.locks.counters.take(path, session, proposal)?;
        Some(Self::draw(fence, Some(version)))
    }

    fn draw(fence: Fence, version: Option<i32>) -> Draw {
        let text = fence.to_string();
        Draw {
            fence,
            text,
            version,
        }
    }

    /// Returns the part of a transaction that draws.
    pub(super) fn draw_op<'a>(&'a self, draw: &'a Draw) -> Op<'a> {
        let (path, text) = (&self.paths.fence, draw.text.as_bytes());
        match draw.version {
            Some(version) => Op::SetData(path, text, version),
            None => Op::Create(path, text, Lifetime::Persistent, self.locks.access()),
        }
    }

    /// Adds a draw for the own node. It succeeds only if the node is still there.
    pub(super) fn add_draw(
        &self,
        connection: &Connection,
        batch: &mut Batch<'_>,
        node: &Node,
        draw: &Draw,
    ) -> Result<Pending<Outcome>, Error> {
        let path = format!("{}/{}", self.paths.lock, node.name);
        let data = self.data(connection, Some(draw))?;
        let own = Op::SetData(&path, &data, client::ANY);
        let parts = vec![own, self.draw_op(draw)];
        Ok(batch.add(&Op::Multi(parts), client::transaction))
    }

    /// Returns the data of the own node.
    pub(super) fn data(
        &self,
        connection: &Connection,
        draw: Option<&Draw>,
    ) -> Result<Vec<u8>, Error> {
        let mut data = NodeData::of(self.request, connection.timeout);
        data.fence = draw.map(|draw| draw.fence.get());
        data.to_bytes()
    }

    /// Notes a draw, and returns what it gives.
    pub(super) fn drawn(
        &self,
        connection: &Connection,
        draw: &Draw,
        answer: &Answer<Effects>,
    ) -> Drawn {
        let (path, session) = (&self.paths.fence, connection.session);
        let counters = &self.locks.counters;
        counters.drew(path, session, draw.fence, draw.version);
        let term = term(connection, self.request.ttl, answer);
        Drawn {
            grant: Grant::new(draw.fence, term),
            // The last part wrote the counter.
            by: answer.value.written.map(|counter| counter.written_by),
        }
    }

    /// Draws a fence in the turn of the own node.
    pub(super) async fn take(
        &mut self,
        connection: &Connection,
        node: &Node,
        counter: Option<Counter>,
    ) -> Result<Step, Error> {
        let proposal = self.proposal(connection).await?;
        let last = counter.and_then(|counter| counter.last);
        let version = counter.map(|counter| counter.version);
        let draw = Self::draw(Fence::after(last, proposal)?, version);
        let mut batch = connection.batch();
        let drawing = self.add_draw(connection, &mut batch, node, &draw)?;
        batch.send();
        match client::committed(drawing.answer().await?) {
            Ok(answer) => {
                let grant = self.drawn(connection, &draw, &answer).grant;
                Ok(self.granted(grant))
            }
            Err((0, Code::NO_NODE)) => {
                (self.node, self.may_have_node) = (None, true);
                Ok(Step::Again)
            }
            // Another grant was faster, perhaps of another lock with the same counter.
            Err((1, Code::BAD_VERSION | Code::NODE_EXISTS)) => Ok(Step::Again),
            Err((1, Code::NO_NODE)) => {
                let folder = fences(self.locks.root());
                self.locks
                    .ensure_folder(connection, &folder, Lifetime::Persistent)
                    .await?;
                Ok(Step::Again)
            }
            Err((_, code)) => Err(refused(&self.paths.fence, code)),
        }
    }

    /// Returns the time that the fence must exceed.
    async fn proposal(&self, connection: &Connection) -> Result<WallTime, Error> {
        if let Some(proposal) = self.known_proposal(connection) {
            return Ok(proposal);
        }
        // Perhaps the leader's clock was set right meanwhile.
        let now = self.locks.ask_time(connection).await?;
        let proposal = self.own_proposal();
        proposal.check(Some(wall(now))).map(|()| proposal)
    }

    /// The same, if what is known of the leader's clock allows it.
    fn known_proposal(&self, connection: &Connection) -> Option<WallTime> {
        let proposal = self.own_proposal();
        let now = connection.about_leader_time()?;
        proposal.check(Some(wall(now))).ok().map(|()| proposal)
    }

    fn own_proposal(&self) -> WallTime {
        let own = self.locks.context.env().clock.wall();
        self.request.proposal.max(own)
    }
}
