use std::cmp::Ordering;
use std::collections::BinaryHeap;

use leasehold_quorum::MemberIndex;

use crate::time::Time;

/// An action that is due at some instant.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A packet arrives at the server's end of a connection.
    ToServer(usize),
    /// A packet arrives at the client's end of a connection.
    ToClient(usize),
    /// The client checks whether a connection is dead.
    CheckConnection(usize),
    /// The client checks whether the server answered the first commands of a connection.
    CheckOpening(usize),
    /// The server's end of a connection ends.
    CloseAtServer(usize),
    /// The client connects to a member.
    Connect {
        client: usize,
        member: MemberIndex,
    },
    /// A timer of the engine, or of a guard, is due. Older tokens are void.
    Wake {
        client: usize,
        token: u64,
    },
    /// The client writes the requests of its engine.
    Flush {
        client: usize,
    },
    /// A program continues. Older tokens are void.
    Program {
        client: usize,
        program: usize,
        token: u64,
    },
    Poller(usize),
    Fault,
    /// The clients of each list are cut off from another server.
    Split,
    Repair(Repair),
    Phase,
    /// Nothing disturbs the clients from now on.
    Calm,
}

/// What ends a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repair {
    ResumeServer(usize),
    StartServer {
        server: usize,
        keeps_data: bool,
    },
    StepBack(usize),
    SpeedUp(usize),
    /// The client gives up a connection that delays what it sends.
    GiveUp(usize),
    Wake(usize),
    /// A client replaces one that died.
    Join,
}

#[derive(Debug)]
struct AgendaEntry {
    at: Time,
    /// Keeps the order of entries with the same instant.
    number: u64,
    action: Action,
}

/// The actions that are due, in order.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    entries: BinaryHeap<AgendaEntry>,
    added: u64,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: Time, action: Action) {
        self.added += 1;
        let number = self.added;
        self.entries.push(AgendaEntry { at, number, action });
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Action)> {
        let AgendaEntry { at, action, .. } = self.entries.pop()?;
        Some((at, action))
    }
}

impl Ord for AgendaEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for AgendaEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AgendaEntry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for AgendaEntry {}
