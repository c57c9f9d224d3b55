pub(crate) mod index;

use std::collections::VecDeque;
use std::time::Duration;

use leasehold_types::{BootInstant, Error, Incarnation};

use crate::member::index::MemberIndex;
use crate::messages::{Lease, RequestId};
use crate::operation::OperationId;

/// The state of the connection to one member.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// The requests without a reply, in the order in which they were sent. Replies keep this order.
    flights: VecDeque<Flight>,
    /// Until then the requests need no look: none reaches its limit, or the last look was a moment ago.
    next_limit: Option<BootInstant>,
    /// When the connection was opened; `None` while there is none.
    pub(crate) connected: Option<BootInstant>,
    /// The member does not know the plain commands.
    pub(crate) scripts_only: bool,
    /// When the last heartbeat was sent on this connection.
    pub(crate) heartbeat: Option<BootInstant>,
    /// When it last answered a request.
    last_reply: Option<BootInstant>,
    /// A smoothed round trip, in nanoseconds; `None` before the first reply.
    round_trip: Option<u64>,
    /// Releases of leases and waits that ended while the member took no requests.
    owed: VecDeque<Owed>,
    /// The data of the member, by its last reply.
    data: Option<Incarnation>,
}

/// A release that a member gets once it is connected again, or answers again.
#[derive(Debug)]
pub(crate) struct Owed {
    pub(crate) lease: Lease,
    /// The lease ends by itself.
    until: BootInstant,
}

/// A request without a reply.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) id: RequestId,
    pub(crate) task: Task,
    pub(crate) sent: BootInstant,
    limit: BootInstant,
    /// It reached its limit, and the operation continued without it.
    pub(crate) late: bool,
}

/// What a request is for.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// An attempt of an operation at this member, by its number.
    Attempt(OperationId, u32),
    /// Confirms a fence at the member.
    Confirm(OperationId, leasehold_types::Fence),
    /// Frees a lease for a release, unless other clients wait.
    Free(OperationId),
    /// Releases a lease.
    Release(Box<ReleaseTask>),
    /// Ends a wait. The reply is not used: the server notifies an entry that it still has again.
    Dequeue,
    /// Moves a holder to its permit. The reply is not used: the next renewal reports the same.
    MovePermit,
    /// Reports that the client is alive, for these waits.
    Heartbeat(Vec<OperationId>),
    Renewal(RenewalTask),
    /// Opens, writes or reads a record.
    Record(OperationId),
    /// Asks the member for its status, or updates its record.
    Background,
}

/// A release of one lease at one member.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseTask {
    pub(crate) lease: Lease,
    /// The release that counts the answer.
    pub(crate) operation: Option<OperationId>,
    /// The attempt of the successor, which is part of the request.
    pub(crate) successor: Option<(OperationId, u32)>,
}

/// What a request of a renewal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenewalTask {
    /// Extends the leases of an operation.
    Renew(OperationId),
    /// Restores leases of an operation.
    Repair(OperationId),
    /// Releases what a late repair may have restored. The reply is not used.
    Free,
}

/// The member that answered, to a request sent at `sent`, and from which data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) member: MemberIndex,
    pub(crate) sent: BootInstant,
    pub(crate) incarnation: &'a Incarnation,
    /// The reply came after the limit of its request.
    pub(crate) late: bool,
}

/// After a busy answer, and in its first second, a client uses no plain commands.
pub(crate) const HOT_PAUSE: Duration = Duration::from_secs(1);

/// The greatest number of releases that are owed to one member. Leases end by themselves.
const OWED_MAX: usize = 10_000;

/// After a request reached its limit, the others are looked at this much later: a member that froze under load leaves
/// many thousands of them.
const LIMIT_STEP: Duration = Duration::from_millis(10);

/// How many requests a member may have in flight that is silent, or sends notifications without end. Beyond that it is
/// owed its releases, and it gets no other requests.
const FLIGHTS_MAX: usize = 1_000;

impl Member {
    /// A request is sent.
    #[inline]
    pub(crate) fn push(&mut self, id: RequestId, task: Task, sent: BootInstant, at: BootInstant) {
        self.next_limit = Some(self.next_limit.map_or(at, |next| next.min(at)));
        self.flights.push_back(Flight {
            id,
            task,
            sent,
            limit: at,
            late: false,
        });
    }

    /// Whether a release can be sent now.
    pub(crate) fn takes_release(&self, is_silent: bool) -> bool {
        self.connected.is_some() && !(is_silent && self.is_full())
    }

    /// Whether the member has too many requests in flight for another one that only follows a hint.
    pub(crate) fn is_full(&self) -> bool {
        self.flights.len() >= FLIGHTS_MAX
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    /// Returns how many requests have no reply.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Returns what the requests in flight are for.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.flights.iter().map(|flight| &flight.task)
    }

    /// Takes the request that a reply answers. The driver skipped the replies to older ones.
    pub(crate) fn answered(&mut self, id: RequestId, now: BootInstant) -> Option<Flight> {
        let flight = match self.flights.front() {
            Some(oldest) if oldest.id == id => self.flights.pop_front()?,
            _ => {
                let index = self.flights.iter().position(|flight| flight.id == id)?;
                self.flights.remove(index)?
            }
        };
        self.last_reply = Some(now);
        let took = now.as_nanos().saturating_sub(flight.sent.as_nanos());
        self.round_trip = Some(match self.round_trip {
            None => took,
            Some(known) => (known * 7 + took) / 8,
        });
        Some(flight)
    }

    /// Marks the requests that reached their limit, and returns what they were for. `lease_of` names the lease of a
    /// release, which may be over when the reply comes.
    pub(crate) fn expire(
        &mut self,
        now: BootInstant,
        lease_of: impl Fn(&Task) -> Option<Lease>,
    ) -> Vec<(Task, BootInstant, Duration)> {
        if self.next_limit.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let waiting = self.flights.iter_mut().filter(|flight| !flight.late);
        let due = waiting.filter(|flight| flight.limit <= now);
        let expired = due.map(|flight| {
            flight.late = true;
            let limit = flight.limit.since(flight.sent);
            let task = flight.task.clone();
            if let Task::Free(id) = task
                && let Some(lease) = lease_of(&task)
            {
                flight.task = Task::Release(Box::new(ReleaseTask {
                    lease,
                    operation: Some(id),
                    successor: None,
                }));
            }
            (task, flight.sent, limit)
        });
        let expired = expired.collect();
        let waiting = self.flights.iter().filter(|flight| !flight.late);
        let next = waiting.map(|flight| flight.limit).min();
        self.next_limit = next.map(|next| next.max(now + LIMIT_STEP));
        expired
    }

    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        // Without requests there is nothing to look at.
        self.next_limit.filter(|_| !self.flights.is_empty())
    }

    /// The connection is gone. Returns the requests without a reply.
    pub(crate) fn disconnect(&mut self) -> Vec<Flight> {
        self.connected = None;
        self.heartbeat = None;
        self.next_limit = None;
        std::mem::take(&mut self.flights).into()
    }

    /// Returns the data that the member last replied from.
    #[inline]
    pub(crate) fn data(&self) -> Option<&Incarnation> {
        self.data.as_ref()
    }

    pub(crate) fn set_data(&mut self, data: &Incarnation) {
        self.data = Some(data.clone());
    }

    /// Whether plain commands may take a lock for which no client waits. In the first second of a connection they may
    /// only if the lock was granted before (`is_known`).
    #[inline]
    pub(crate) fn takes_plain_commands(&self, is_known: bool, now: BootInstant) -> bool {
        let is_old = |since| now.since(since) >= HOT_PAUSE;
        !self.scripts_only && (is_known || self.connected.is_some_and(is_old))
    }

    /// Whether releases are owed.
    #[inline]
    pub(crate) fn owes_nothing(&self) -> bool {
        self.owed.is_empty()
    }

    /// Until when the member counts as at work on the requests that it has not answered.
    pub(crate) fn works_until(&self) -> Option<BootInstant> {
        Some(self.last_reply? + AT_WORK)
    }

    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(Duration::from_nanos)
    }

    pub(crate) fn owe(&mut self, lease: Lease, now: BootInstant) {
        while self.owed.front().is_some_and(|owed| owed.until <= now) {
            self.owed.pop_front();
        }
        if self.owed.len() < OWED_MAX {
            let until = now + lease.lock_request.ttl;
            self.owed.push_back(Owed { lease, until });
        }
    }

    /// Returns the leases whose releases are owed.
    pub(crate) fn owed(&self, now: BootInstant) -> impl Iterator<Item = Lease> {
        let owed = self.owed.iter().filter(move |owed| owed.until > now);
        owed.map(|owed| owed.lease.clone())
    }

    /// Takes a release that can be sent now.
    pub(crate) fn pop_owed(&mut self, now: BootInstant, is_silent: bool) -> Option<Lease> {
        if !self.takes_release(is_silent) {
            return None;
        }
        loop {
            let owed = self.owed.pop_front()?;
            if owed.until > now {
                return Some(owed.lease);
            }
        }
    }
}

/// A member that answered something within this time is at work: it answers in order, and a burst of this client may
/// be ahead of the request. A frozen member costs a round at most this time.
const AT_WORK: Duration = Duration::from_millis(100);

/// Returns the error of a request that reached its limit.
pub(crate) fn late(limit: Duration) -> Error {
    Error::no_answer_within(limit).with_unknown_effect()
}

#[cfg(test)]
mod tests;
