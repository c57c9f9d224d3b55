use std::fmt;

use crate::env::clock::WallTime;
use crate::types::{ClientInfo, Error, Fence, Owner};

/// The current leader, as an observer sees it: the client that holds the lock and has announced itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The owner of the leader's lease.
    pub owner: Owner,
    /// The client's description of itself; `None` if it gave none, or has not given it yet.
    pub client: Option<ClientInfo>,
    /// The fence that it was granted: greater than that of every earlier leader.
    pub fence: Fence,
    /// The value that it publishes; empty by default.
    pub value: String,
    /// When it became the leader, by its own wall clock.
    pub since: WallTime,
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.client {
            Some(client) => client.fmt(f),
            None => write!(f, "client {}", self.owner.client()),
        }
    }
}

/// What an observer reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LeaderChange {
    /// This leader leads. It differs from the one before, published another value, can be seen again, or
    /// its description became known.
    Leads(Leader),
    /// There is no leader: the lock is free, or its holder has not announced itself.
    Nobody,
    /// The leader is not known: the store could not be read, for this reason. Another change follows as
    /// soon as the leader is known again.
    Unknown(Error),
}
