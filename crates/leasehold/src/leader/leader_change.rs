use std::fmt;

use crate::clock::WallTime;
use crate::error::Error;
use crate::fence::Fence;
use crate::holder::ClientInfo;
use crate::owner::Owner;

/// Who leads, as an observer sees it: somebody who holds the lock, and has announced itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The attempt that was granted.
    pub owner: Owner,
    /// Who it is; `None` if it never said, or not yet.
    pub client: Option<ClientInfo>,
    /// The fence it was granted: greater than that of every leader before.
    pub fence: Fence,
    /// What it published with its leadership; empty unless it said something.
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

/// What an observer is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LeaderChange {
    /// This one leads: it is another than before, published something else, can be seen again, or it has
    /// become known who it is.
    Leads(Leader),
    /// Nobody leads: nobody holds the lock, or whoever does has not announced itself.
    Nobody,
    /// It is not known who leads: the store could not be asked, for this reason. Another one follows when
    /// it is known again.
    Unknown(Error),
}
