use std::sync::Arc;

use leasehold::store::{Busy, Grant, LockRequest, Progress};
use leasehold::{Error, ErrorKind};

use super::session::LocksInner;
use super::wakeup::Wakeup;
use crate::queue::{Kind, Node, Paths};

/// One call of `acquire`.
pub(super) struct Acquire<'a> {
    pub(super) locks: &'a LocksInner,
    pub(super) request: &'a Arc<LockRequest>,
    pub(super) progress: &'a Progress<'a>,
    pub(super) paths: Paths,
    pub(super) kind: Kind,
    /// The node in the queue.
    pub(super) node: Option<Node>,
    /// Whether the server may have a node whose name is unknown.
    pub(super) may_have_node: bool,
    /// Whether the node ahead has just ended.
    pub(super) is_notified: bool,
}

/// What a step of an attempt leads to.
pub(super) enum Step {
    Granted(Grant),
    /// Another owner is ahead; wait for this.
    Behind(Busy, Wakeup),
    /// Something changed meanwhile.
    Again,
}

impl Acquire<'_> {
    /// Notes that the owner has nothing at the server.
    pub(super) fn gone(&mut self) {
        (self.node, self.may_have_node) = (None, false);
        self.locks.forget(self.request);
    }

    /// Notes the name of the own node.
    pub(super) fn found(&mut self, name: &str) -> Result<(), Error> {
        let node = Node::parse(name).ok().flatten().ok_or_else(|| {
            let text =
                format!("the server named a node {name:?}; are 2^31 numbers of this lock used up?");
            Error::new(ErrorKind::InvalidResponse, text)
        })?;
        self.locks.change(self.request.owner, |place| {
            place.node = Some(node.name.clone());
        });
        (self.node, self.may_have_node) = (Some(node), false);
        Ok(())
    }

    /// Notes that the owner holds the lock.
    pub(super) fn granted(&self, grant: Grant) -> Step {
        self.locks
            .change(self.request.owner, |place| place.is_granted = true);
        Step::Granted(grant)
    }
}
