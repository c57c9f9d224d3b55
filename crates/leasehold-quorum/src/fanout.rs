//! Asks all members, and counts those that have not answered.

use leasehold_types::BootInstant;

use crate::member::index::{MemberIndex, Members};
use crate::net::Net;

/// The members of one operation, and its open requests.
#[derive(Debug)]
pub(crate) struct Fanout {
    /// When the operation began.
    began: BootInstant,
    /// The members that are not connected for the first time yet.
    pending: Members,
    /// How many requests have no reply.
    open: usize,
}

/// The result of asking one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// A request is on its way.
    Sent,
    /// Look again once something changed at a member.
    Later,
    /// The operation continues without the member.
    Failed,
}

impl Fanout {
    pub(crate) fn new(net: &Net) -> Self {
        Self {
            began: net.now.instant,
            pending: Members::first(net.members.len()),
            open: 0,
        }
    }

    pub(crate) fn began(&self) -> BootInstant {
        self.began
    }

    /// Asks the members that were not asked yet.
    pub(crate) fn ask(&mut self, mut ask: impl FnMut(MemberIndex) -> Contact) {
        for member in std::mem::take(&mut self.pending).iter() {
            match ask(member) {
                Contact::Sent => self.open += 1,
                Contact::Later => self.pending.insert(member),
                Contact::Failed => {}
            }
        }
    }

    /// One request went to all members that were not asked yet.
    pub(crate) fn asked_all(&mut self) {
        self.open += std::mem::take(&mut self.pending).len();
    }

    /// A request has its reply, or will have none.
    pub(crate) fn answered(&mut self) {
        self.open -= 1;
    }

    /// How many requests have no reply.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Whether members are not asked yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether each member was asked, and each request has its reply.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 && self.pending.is_empty()
    }
}
