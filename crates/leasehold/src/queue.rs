use std::fmt;

use crate::claim::Mode;
use crate::clock::WallTime;
use crate::holder::ClientInfo;
use crate::owner::Owner;

/// A place in a key's queue. Smaller tickets come first, on every member alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// When the waiting began, by the members' clocks: their lower median.
    pub since: WallTime,
    /// Who waits: the random identity of one wait, which may take many attempts.
    pub waiter: Owner,
}

/// How the caller of an attempt wants to wait, should the lock be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Not at all, or without a place in the queue.
    #[default]
    None,
    /// In the queue. The owner of the claim is the waiter.
    InTurn,
    /// Ahead of the queue: takes what is free, and what is reserved for somebody who waits.
    Barging,
}

/// One who waits for a lock, as far as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// Its place in the queue.
    pub ticket: Ticket,
    /// How it wants to hold the lock.
    pub mode: Mode,
    /// Who it is; `None` if it never said.
    pub client: Option<ClientInfo>,
}

impl Waiter {
    /// A waiter of which nothing is known yet but its ticket.
    pub fn unknown(ticket: Ticket, mode: Mode) -> Self {
        Self {
            ticket,
            mode,
            client: None,
        }
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.client {
            Some(client) => client.fmt(f),
            None => write!(f, "client {}", self.ticket.waiter.client()),
        }
    }
}
