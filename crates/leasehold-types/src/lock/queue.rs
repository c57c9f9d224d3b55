use std::fmt;

use crate::instants::WallTime;
use crate::{ClientInfo, Mode, Owner};

/// A place in a key's queue. Smaller tickets come first, on every member alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// When the wait began: the lower median of the members' clocks.
    pub since: WallTime,
    /// The waiter: the random identity of one round of a wait.
    pub waiter: Owner,
}

/// A waiter for a lock, with what the store knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// Its place in the queue.
    pub ticket: Ticket,
    /// The mode that it waits for.
    pub mode: Mode,
    /// The waiter's client; `None` if it is unknown.
    pub client: Option<ClientInfo>,
}

impl Waiter {
    /// Returns a waiter with nothing but its ticket and mode.
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
