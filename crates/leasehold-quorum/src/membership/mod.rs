//! Which members may be asked, and whose answers count.
//!
//! [`Membership`] takes in what members report about themselves and lets the shared rules of
//! [`trust`](crate::trust) decide. It asks members for their status and maintains their records of the
//! quorum. A member has at most one of these background requests in flight.

mod background;
mod event;
mod health;
#[cfg(test)]
pub(crate) mod tests;
mod votes;

use std::collections::VecDeque;
use std::sync::Arc;

use leasehold::clock::BootInstant;
use leasehold::env::Entropy;
use leasehold::store::{MemberFailure, MemberId, MemberSet, Owner, RunId, Sample, Ticket};
use leasehold::{Error, ErrorKind};

use crate::request::Request;
use crate::trust::{Interval, Learned, Trust, UntrustedReason};
use crate::waiting::tickets::Tickets;

pub use event::MemberEvent;

/// What one client knows of the members of its quorum.
#[derive(Debug)]
pub(crate) struct Membership {
    ids: Vec<MemberId>,
    trust: Trust,
    tickets: Tickets,
    members: Vec<Member>,
    requests: VecDeque<(usize, Request)>,
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

/// Whether a member may be asked for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Requests may be sent.
    Open,
    /// Not yet: its status is not known. Look again after [`Membership::take_changed`].
    Pending,
    /// No. [`Membership::obstacle`] says why.
    Closed,
}

impl Membership {
    /// Returns the membership of members that are not connected yet, in the order of `set.ids`.
    pub(crate) fn new(
        set: MemberSet,
        enforced: bool,
        read_only: bool,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let ids = set.ids.clone();
        let member = |_| Member {
            connection: Connection::Pending,
            met: false,
            missed: None,
            unanswered: None,
            asked: None,
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
            trust: Trust::new(ids.clone(), set, enforced),
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

    pub(crate) fn id(&self, member: usize) -> &MemberId {
        &self.ids[member]
    }

    /// The driver connected to the member.
    pub(crate) fn connected(&mut self, now: BootInstant, member: usize) {
        self.members[member].connection = Connection::Open;
        self.ask(now, member, Request::Status);
        self.changed = true;
    }

    /// The connection broke or could not be opened.
    pub(crate) fn disconnected(&mut self, now: BootInstant, member: usize, error: Error) {
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
        member: usize,
        sent: BootInstant,
        error: &Error,
    ) {
        self.failed(member, error);
        let state = &mut self.members[member];
        if state.silent_since.is_none() && matches!(state.connection, Connection::Open) {
            state.silent_since = Some(sent);
            self.changed = true;
            self.ask(now, member, Request::Status);
        }
    }

    /// A request of an operation failed for a reason that concerns the whole member, not one lock.
    pub(crate) fn failed(&mut self, member: usize, error: &Error) {
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
    pub(crate) fn refused(&mut self, member: usize, error: &Error) {
        self.members[member].refusing = true;
        self.failed(member, error);
    }

    /// A request of an operation was answered. `grants` says whether a member that refuses to grant would have
    /// refused it.
    pub(crate) fn answered(&mut self, member: usize, grants: bool) {
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
        member: usize,
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

    /// Returns whether requests of an operation that began at `began` may be sent to the member. If an
    /// older status of the member is in the way, asks for a new one.
    pub(crate) fn access(&mut self, now: BootInstant, member: usize, began: BootInstant) -> Access {
        let state = &self.members[member];
        match state.connection {
            Connection::Open => {}
            Connection::Pending => return Access::Pending,
            Connection::Closed(..) => return Access::Closed,
        }
        if state.silent_since.is_some() {
            return Access::Closed;
        }
        if !state.met {
            // After a refusal the retry decides.
            return match state.missed {
                None => Access::Pending,
                Some(_) => Access::Closed,
            };
        }
        let is_forming = match self.trust.may_ask(member) {
            Ok(()) => return Access::Open,
            Err(UntrustedReason::NotFormed { missing }) => self.may_form(missing),
            Err(_) => false,
        };
        let is_known = self.trust.heard_since(member, began);
        if !is_known && state.retry.is_none() {
            self.ask(now, member, Request::Status);
        }
        match is_known && !is_forming {
            true => Access::Closed,
            false => Access::Pending,
        }
    }

    /// Returns whether the quorum may be initialized soon: none of the members that it needs is known to be
    /// unreachable.
    fn may_form(&self, missing: &[MemberId]) -> bool {
        let members = self.ids.iter().zip(&self.members);
        let mut needed = members.filter(|(id, _)| missing.contains(id));
        needed.all(|(_, member)| match member.connection {
            Connection::Pending => true,
            Connection::Open => member.silent_since.is_none() && member.missed.is_none(),
            Connection::Closed(..) => false,
        })
    }

    /// Returns why the member may not be asked, if so.
    pub(crate) fn obstacle(&self, now: BootInstant, member: usize) -> Option<MemberFailure> {
        let state = &self.members[member];
        let unreachable = |text: String| Error::new(ErrorKind::Unreachable, text);
        let error = match &state.connection {
            Connection::Pending => unreachable("not connected yet".into()),
            Connection::Closed(error, _) => error.clone(),
            Connection::Open => match (state.silent_since, &state.missed) {
                (Some(since), _) => {
                    let span = now.since(since);
                    unreachable(format!("has not answered for {span:.1?}"))
                }
                (None, Some(error)) if !state.met => error.clone(),
                (None, _) if !state.met => UntrustedReason::Unknown.error(),
                (None, _) => {
                    let reason = self.trust.may_ask(member).err()?;
                    return Some(self.failure(now, member, reason));
                }
            },
        };
        let error = self.named(member, error);
        Some(MemberFailure::new(self.ids[member].clone(), error))
    }

    /// Returns the ticket of a wait that begins now: the lower median of the members' clocks. If no clock
    /// was read recently, returns `None` and asks the members.
    pub(crate) fn ticket(&mut self, now: BootInstant, waiter: Owner) -> Option<Ticket> {
        let ticket = self.tickets.draw(waiter, now);
        if ticket.is_none() {
            for member in 0..self.len() {
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

    /// Returns whether the result of [`Membership::access`] may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn note(&mut self, member: usize, learned: Learned) {
        if let Some(span) = learned.paused {
            let event = MemberEvent::Suspended { member, span };
            self.events.push_back(event);
        }
    }

    fn named(&self, member: usize, error: Error) -> Error {
        error.with_store(self.ids[member].as_str())
    }
}
