use std::collections::VecDeque;
use std::rc::Rc;

use leasehold_fakeredis::ConnectionId;
use leasehold_quorum::{MemberIndex, Request};

use crate::time::Time;

/// The bytes of each request.
pub(crate) type Requests = Vec<(Option<Rc<Request>>, Vec<u8>)>;

/// What a client sends at once.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) sent: Time,
    pub(crate) requests: Requests,
}

/// A connection of a client to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: usize,
    /// The client's member that this connection leads to.
    pub(crate) member: MemberIndex,
    pub(crate) server: usize,
    /// The server's end, while it is open there.
    pub(crate) redis: Option<ConnectionId>,
    /// The client uses it.
    pub(crate) is_open: bool,
    /// The server accepted it before. It accepts no packet after its end is closed.
    pub(crate) was_accepted: bool,
    /// It no longer delivers anything.
    pub(crate) is_dead: bool,
    /// The extra time of a message, because the connection is slow.
    pub(crate) extra: Time,
    pub(crate) to_server: Pipe<Packet>,
    pub(crate) to_client: Pipe<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) enum Packet {
    Data(Upload),
    /// The client closed the connection.
    Close,
}

/// One direction of a connection. It keeps the order of packets.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    /// Each packet has the instants at which it is sent and arrives.
    pub(crate) packets: VecDeque<(Time, Time, T)>,
    last: Time,
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
            last: 0,
        }
    }
}

impl<T> Pipe<T> {
    pub(crate) fn push(&mut self, sent: Time, arrival: Time, packet: T) -> Time {
        self.last = self.last.max(arrival);
        self.packets.push_back((sent, self.last, packet));
        self.last
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<T> {
        let is_due = self.packets.front().is_some_and(|(_, at, _)| *at <= now);
        let (.., packet) = self.packets.pop_front().filter(|_| is_due)?;
        Some(packet)
    }

    /// Returns when the oldest packet in flight was sent.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|(sent, ..)| *sent)
    }
}

/// The path between a client and a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub(crate) to_server_blocked_until: Time,
    pub(crate) to_client_blocked_until: Time,
}
