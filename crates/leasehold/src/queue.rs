use std::fmt;
use std::time::Duration;

use crate::claim::Mode;
use crate::clock::WallTime;
use crate::holder::ClientInfo;
use crate::key::Key;
use crate::owner::Owner;
use crate::permits::Slot;

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
    /// In the queue, as this waiter.
    InTurn(Owner),
    /// Ahead of the queue: takes what is free, and what is reserved for somebody who waits.
    Barging,
}

/// How a member is asked for a lock that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// In the order of tickets.
    Queued(Ticket),
    /// Ahead of all tickets, and without one.
    Barging,
}

/// What becomes of a lock that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It is handed over to the first in the queue.
    HandOver,
    /// It is left free for so long before it is handed over, for those who poll; if nobody waits in
    /// the queue, it is free anyway.
    LeaveFree(Duration),
    /// The attempt failed at other members, and its waiter goes on waiting: it is put back into
    /// the queue, and the lock is handed over to the first.
    Requeue(Ticket),
}

/// What a member tells a waiter without being asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The lock.
    pub key: Key,
    /// Whom it concerns.
    pub waiter: Owner,
    /// What it says.
    pub word: Word,
    /// Which permit it is about, where the waiter wants one.
    pub slot: Option<Slot>,
}

/// What a [`Hint`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The lock is reserved for the waiter here, for a second: try now.
    YourTurn,
    /// The waiter is one of the next here: should nothing be heard, it is worth trying once the
    /// one before it has had its time.
    Soon {
        /// How long that is at most. Nothing: the member wants to know at once whether the waiter is
        /// still there, since it keeps others out of what they could share.
        remaining: Duration,
    },
}

/// What reaches a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A word to one waiter.
    Hint(Hint),
    /// The connection broke: nobody is told anything any more, and those who wait are being
    /// skipped. Ask again.
    Deaf,
}

/// Who listens at a member: called for each thing that is heard, and says whether it concerns it.
/// Must not block.
pub type Ear = Box<dyn Fn(Heard) -> bool + Send + Sync>;

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
