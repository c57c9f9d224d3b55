//! Which members may be asked, and whose answers count.
//!
//! [`Membership`] takes in what members report about themselves and lets the shared rules of
//! [`trust`](crate::trust) decide. It asks members for their status and maintains their records of the
//! quorum. A member has at most one of these background requests in flight.

mod access;
mod background;
mod event;
mod first_connections;
mod health;
#[cfg(test)]
pub(crate) mod tests;
mod votes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{
    BootInstant, Entropy, Error, ErrorKind, MemberId, MemberSet, Owner, RunId, Sample, Ticket,
};

use crate::member::index::{MemberIndex, PerMember};
use crate::messages::Request;
use crate::trust::{Interval, Learned, Trust, UntrustedReason};
use crate::waiting::tickets::Tickets;

use first_connections::FirstConnections;

pub(crate) use access::Access;
pub use event::MemberEvent;

/// What one client knows of the members of its quorum.
#[derive(Debug)]
pub(crate) struct Membership {
    ids: PerMember<MemberId>,
    trust: Trust,
    tickets: Tickets,
    members: PerMember<Member>,
    first_connections: FirstConnections,
    requests: VecDeque<(MemberIndex, Request)>,
    events: VecDeque<MemberEvent>,
    /// Whether the result of [`Membership::access`] may have changed.
    changed: bool,
    entropy: Arc<dyn Entropy>,
    /// Leaves the members' records alone.
    read_only: bool,
}

/// A background request in flight.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sent: BootInstant,
    limit: Duration,
    is_status: bool,
    /// It reached its limit, and its member has been silent since.
    late: bool,
}

/// What is known about one member, apart from its trust.
#[derive(Debug)]
struct Member {
    connection: Connection,
    /// It reported its status, or need not.
    met: bool,
    /// Why it did not report its status.
    missed: Option<Error>,
    /// The last request for its status that failed, and when it was sent.
    unanswered: Option<(BootInstant, Error)>,
    asked: Option<Asked>,
    /// How long the next background request may take.
    limit: Duration,
    /// When to ask again for a status that it did not report.
    retry: Option<BootInstant>,
    silent_since: Option<BootInstant>,
    /// Whether its requests fail, so that only the first failure causes an event.
    failing: bool,
    /// Whether it refuses to grant locks, so that other replies do not end the failure: a server without memory still
    /// releases and renews.
    refusing: bool,
    /// When the last status that it reported was requested.
    heard: Option<BootInstant>,
    /// Its run, from that status.
    run: Option<RunId>,
    /// When it reported a new run, until the other members answered again.
    restarted: Option<BootInstant>,
    /// Why it has no vote, if so, as of the last event.
    told: Option<Option<UntrustedReason>>,
}

#[derive(Debug)]
enum Connection {
    /// The driver tries to connect for the first time.
    Pending,
    Open,
    /// Since the instant at which it broke, or at which the last attempt to connect failed.
    Closed(Error, BootInstant),
}

impl Membership {
    /// Returns the membership of members that are not connected yet, in the order of `set.ids`.
    pub(crate) fn new(
        set: MemberSet,
        enforced: bool,
        read_only: bool,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let ids: PerMember<MemberId> = set.ids.clone().into();
        let member = |_| Member {
            connection: Connection::Pending,
            met: false,
            missed: None,
            unanswered: None,
            asked: None,
            limit: background::LIMIT,
            retry: None,
            silent_since: None,
            failing: false,
            refusing: false,
            heard: None,
            run: None,
            restarted: None,
            told: None,
        };
        Self {
            members: ids.iter().map(member).collect(),
            tickets: Tickets::new(ids.len()),
            trust: Trust::new(ids.raw.clone(), set, enforced),
            first_connections: FirstConnections::default(),
            read_only,
            ids,
            requests: VecDeque::new(),
            events: VecDeque::new(),
            changed: false,
            entropy,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, member: MemberIndex) -> &MemberId {
        &self.ids[member]
    }

    /// An operation begins.
    pub(crate) fn begin(&mut self, now: BootInstant) {
        self.first_connections.begin(now);
    }

    /// The driver connected to the member.
    pub(crate) fn connected(&mut self, now: BootInstant, member: MemberIndex) {
        self.members[member].connection = Connection::Open;
        self.ask(now, member, Request::Status);
        self.changed = true;
    }

    /// The connection broke or could not be opened.
    pub(crate) fn disconnected(&mut self, now: BootInstant, member: MemberIndex, error: Error) {
        let error = self.named(member, error);
        let state = &mut self.members[member];
        let was_open = matches!(state.connection, Connection::Open);
        let is_asked = state.asked.take().is_some();
        state.connection = Connection::Closed(error.clone(), now);
        self.requests.retain(|(to, _)| *to != member);
        // A server may close an idle connection, so the next one decides.
        if !was_open || is_asked {
            self.failed(member, &error);
        }
        if is_asked {
            self.miss(now, member, error);
        }
        self.changed = true;
    }

    /// A request of an operation, sent at `sent`, reached its limit. The member gets no more of them until
    /// it reports its status.
    pub(crate) fn silent(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        sent: BootInstant,
        error: &Error,
    ) {
        let limit = self.members[member].limit;
        if limit > background::LIMIT && now.since(sent) < limit {
            // It is known to be slow.
            return;
        }
        self.failed(member, error);
        let state = &mut self.members[member];
        if state.silent_since.is_none() && matches!(state.connection, Connection::Open) {
            state.silent_since = Some(sent);
            self.changed = true;
            self.ask(now, member, Request::Status);
        }
    }

    /// A request of an operation failed for a reason that concerns the whole member, not one lock.
    pub(crate) fn failed(&mut self, member: MemberIndex, error: &Error) {
        let concerns_a_lock = matches!(
            error.kind(),
            ErrorKind::PermitsDiffer | ErrorKind::IncompatibleKey
        );
        if !concerns_a_lock && !std::mem::replace(&mut self.members[member].failing, true) {
            let error = error.clone();
            self.events.push_back(MemberEvent::Fails { member, error });
        }
    }

    /// The member refused to grant a lock, for a reason that may pass.
    pub(crate) fn refused(&mut self, member: MemberIndex, error: &Error) {
        self.members[member].refusing = true;
        self.failed(member, error);
    }

    /// A request of an operation was answered. `grants` says whether a member that refuses to grant would have
    /// refused it.
    #[inline]
    pub(crate) fn answered(&mut self, member: MemberIndex, grants: bool) {
        let state = &mut self.members[member];
        if state.refusing && !grants {
            return;
        }
        state.refusing = false;
        if std::mem::take(&mut state.failing) {
            self.events.push_back(MemberEvent::Answers { member });
        }
    }

    /// Takes in the sample that a member sent with its replies to requests from `sent`. Call it before the
    /// replies are counted.
    pub(crate) fn sample(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        sent: BootInstant,
        sample: &Sample,
    ) {
        let at = Interval {
            sent,
            received: now,
        };
        self.tickets.read(member, sample.clock, sent, now);
        let learned = self.trust.sample(member, sample, at);
        self.note(member, learned);
        // If the member refused its status, it is asked again after a pause.
        if learned.must_look && self.members[member].retry.is_none() {
            self.ask(now, member, Request::Status);
        }
    }

    /// Returns the ticket of a wait that begins now: the lower median of the members' clocks. If no clock
    /// was read recently, returns `None` and asks the members.
    pub(crate) fn ticket(&mut self, now: BootInstant, waiter: Owner) -> Option<Ticket> {
        let ticket = self.tickets.draw(waiter, now);
        if ticket.is_none() {
            for member in self.ids.keys() {
                if self.is_reachable(member) {
                    self.ask(now, member, Request::Status);
                }
            }
        }
        ticket
    }

    /// Returns the next event. The driver logs events and counts them.
    pub(crate) fn poll_event(&mut self) -> Option<MemberEvent> {
        self.events.pop_front()
    }

    fn note(&mut self, member: MemberIndex, learned: Learned) {
        if let Some(span) = learned.paused {
            let event = MemberEvent::Suspended { member, span };
            self.events.push_back(event);
        }
    }

    fn named(&self, member: MemberIndex, error: Error) -> Error {
        error.with_store(self.ids[member].to_string())
    }
}
