use crate::BoxFuture;
use crate::card::Card;
use crate::error::Error;
use crate::member::{MemberFailure, MemberId, Presence};

/// Shows the state of each member: an optional part of a [`Store`](crate::Store) that consists of members.
pub trait Health: Send + Sync {
    /// Asks every member and returns its state, in the order in which the members were given. A member
    /// that does not answer is no error: its state says so. For people and monitoring.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn members(&self) -> BoxFuture<'_, Vec<MemberHealth>>;
}

/// How one member of a set is, as one client sees it. For people and monitoring.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberHealth {
    /// The member.
    pub id: MemberId,
    /// What it says of itself, or why it could not be asked.
    pub presence: Result<Presence, Error>,
    /// Why its answers do not count, and after how long they do again. `None`: they count.
    pub distrust: Option<MemberFailure>,
}

impl MemberHealth {
    /// A member that answered `presence`, and whose answers count.
    pub fn new(id: MemberId, presence: Result<Presence, Error>) -> Self {
        Self {
            id,
            presence,
            distrust: None,
        }
    }
}

impl Presence {
    /// Whether its data is all that its card speaks of: it runs as before, or it was durable before
    /// its restart and is durable now. A server that is not durable now has loaded something other
    /// than the file that was durable. A server that was durable in this run was no replica then.
    pub fn remembers(&self) -> bool {
        let Some(card) = &self.card else { return false };
        if card.run == self.run {
            return !(card.durable && self.was_replica);
        }
        card.durable && self.durable
    }

    /// Whether a quorum relies on the member to remember everything across its next restart: it is
    /// durable now, and no client found otherwise during this run. A member that becomes durable
    /// while it runs is relied on from its next restart on.
    pub fn will_remember(&self) -> bool {
        let durable_so_far = |card: &Card| card.durable || card.run != self.run;
        self.durable && self.card.as_ref().is_none_or(durable_so_far)
    }
}
