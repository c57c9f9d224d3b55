//! The background requests: a member's status, and its record of the quorum.

use std::time::Duration;

use leasehold_types::{BootInstant, Error, ErrorKind, MemberStatus};

use super::{Asked, Connection, MemberEvent, Membership};
use crate::member::index::MemberIndex;
use crate::messages::{Reply, Request};
use crate::trust::{Interval, RecordStep};

impl Membership {
    /// Returns the next background request. The driver sends it like any other.
    pub(crate) fn poll_request(&mut self) -> Option<(MemberIndex, Request)> {
        self.requests.pop_front()
    }

    /// Takes in the reply to a background request.
    pub(crate) fn handle_reply(&mut self, now: BootInstant, member: MemberIndex, reply: Reply) {
        let Some(asked) = self.members[member].asked.take() else {
            return;
        };
        let sent = asked.sent;
        let took = now.since(sent);
        self.members[member].limit = (2 * took).clamp(LIMIT, LIMIT_MAX);
        if took > asked.limit {
            // The member answers again, but its answer is old. If it is only slow, the next one is in time.
            return self.ask(now, member, Request::Status);
        }
        self.members[member].silent_since = None;
        self.changed = true;
        match reply {
            Reply::Status(status) => self.present(now, member, *status, sent),
            Reply::Recorded(_) => self.ask(now, member, Request::Status),
            Reply::Failed(error) => {
                // A server that refuses to write a record may report its status all the same.
                if asked.is_status && matches!(error.kind(), ErrorKind::Unreachable) {
                    self.failed(member, &error);
                }
                self.note_unanswered(member, asked, &error);
                self.miss(now, member, error);
            }
            _ => {
                let text = "not the answer to what was asked";
                self.miss(now, member, Error::new(ErrorKind::InvalidResponse, text));
            }
        }
    }

    /// Handles timers that are due. Call it at [`Membership::next_timeout`] or later.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant) {
        self.changed |= self.first_connections.take_end(now);
        for member in self.ids.keys() {
            let state = &mut self.members[member];
            if state.retry.take_if(|at| *at <= now).is_some() {
                self.ask(now, member, Request::Status);
            } else if let Some(asked) = &mut state.asked
                && !asked.late
                && asked.sent + asked.limit <= now
            {
                asked.late = true;
                let (asked, sent) = (*asked, asked.sent);
                state.silent_since.get_or_insert(sent);
                self.changed = true;
                let error = self.named(member, Error::no_answer_within(asked.limit));
                self.failed(member, &error);
                self.note_unanswered(member, asked, &error);
                self.miss(now, member, error);
            }
        }
    }

    /// A failed write of a record says nothing about the status.
    fn note_unanswered(&mut self, member: MemberIndex, asked: Asked, error: &Error) {
        if asked.is_status {
            let error = self.named(member, error.clone());
            self.members[member].unanswered = Some((asked.sent, error));
        }
    }

    /// Returns when [`Membership::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        let due = self.members.iter().flat_map(|member| {
            let asked = member.asked.filter(|asked| !asked.late);
            [member.retry, asked.map(|asked| asked.sent + asked.limit)]
        });
        let first = self.first_connections.next_timeout();
        due.flatten().chain(first).min()
    }

    /// Sends a background request if the member has none in flight.
    pub(super) fn ask(&mut self, now: BootInstant, member: MemberIndex, request: Request) {
        let state = &mut self.members[member];
        if state.asked.is_none() && matches!(state.connection, Connection::Open) {
            state.retry = None;
            state.asked = Some(Asked {
                sent: now,
                limit: state.limit,
                is_status: matches!(request, Request::Status),
                late: false,
            });
            self.requests.push_back((member, request));
        }
    }

    /// Whether the member is connected and answers.
    pub(crate) fn is_reachable(&self, member: MemberIndex) -> bool {
        let state = &self.members[member];
        matches!(state.connection, Connection::Open) && state.silent_since.is_none()
    }

    fn present(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        status: MemberStatus,
        sent: BootInstant,
    ) {
        let state = &mut self.members[member];
        (state.met, state.missed, state.heard) = (true, None, Some(sent));
        let earlier = state.run.replace(status.run.clone());
        if earlier.is_some_and(|run| run != status.run) {
            if self.trust.is_enforced() {
                state.restarted = Some(now);
            } else {
                self.events.push_back(MemberEvent::Restarted { member });
            }
        }
        self.answered(member, false);
        self.tickets.read(member, status.clock, sent, now);
        let at = Interval {
            sent,
            received: now,
        };
        let learned = self.trust.present(member, status, at);
        self.note(member, learned);
        self.keep_records(now);
    }

    /// The member did not report its status, or did not write its record.
    pub(super) fn miss(&mut self, now: BootInstant, member: MemberIndex, error: Error) {
        let pause = RETRY_PAUSE / 2 + RETRY_PAUSE.mul_f64(self.random() / 2.0);
        let is_enforced = self.trust.is_enforced();
        let error = self.named(member, error);
        let state = &mut self.members[member];
        // A single server need not report its status.
        state.met |= !is_enforced && !error.is_unreachable();
        state.missed = Some(error);
        if state.silent_since.is_none() && matches!(state.connection, Connection::Open) {
            state.retry = Some(now + pause);
        }
        self.trust.missed(member);
        // The other members may provide enough evidence.
        self.keep_records(now);
    }

    /// Sends what the members' records still lack.
    fn keep_records(&mut self, now: BootInstant) {
        let steps = loop {
            let steps = self.trust.member_record_steps(&*self.entropy);
            let reached: Vec<bool> = steps
                .iter()
                .map(|step| self.is_reachable(step.member()))
                .collect();
            for (step, _) in steps.iter().zip(&reached).filter(|(_, reached)| !**reached) {
                self.trust.missed(step.member());
            }
            if !reached.contains(&false) {
                break steps;
            }
        };
        let is_idle = self.members.iter().all(|member| member.asked.is_none());
        for step in steps {
            match step {
                RecordStep::Write(member, _) | RecordStep::Observe(member, _) if self.read_only => {
                    self.trust.missed(member);
                }
                RecordStep::Write(member, edit) => {
                    self.ask(now, member, Request::WriteMemberRecord(Box::new(edit)));
                }
                RecordStep::Observe(member, seen) => {
                    self.ask(now, member, Request::RecordObservation(seen));
                }
                RecordStep::Refresh(member) if is_idle => self.ask(now, member, Request::Status),
                RecordStep::Refresh(_) => {}
            }
        }
        self.ask_peers(now);
    }

    /// Asks the other members about one that restarted. They may have observed a change that this client
    /// missed: that the member is no longer durable.
    fn ask_peers(&mut self, now: BootInstant) {
        let restarted = self.members.iter().map(|it| it.restarted).max().flatten();
        let Some(restarted) = restarted else {
            return;
        };
        let is_behind = |it: &MemberIndex| {
            let state = &self.members[*it];
            let is_old = state.heard.is_none_or(|heard| heard < restarted);
            is_old && state.missed.is_none() && self.is_reachable(*it)
        };
        let behind: Vec<MemberIndex> = self.ids.keys().filter(is_behind).collect();
        for member in &behind {
            self.ask(now, *member, Request::Status);
        }
        if behind.is_empty() {
            self.members.iter_mut().for_each(|it| it.restarted = None);
        }
    }

    /// Returns a number from 0 to 1.
    fn random(&self) -> f64 {
        self.entropy.next_u64() as f64 / u64::MAX as f64
    }
}

/// How long a member may take for a background request: this, or twice what it took for the last one.
pub(super) const LIMIT: Duration = Duration::from_secs(1);
const LIMIT_MAX: Duration = Duration::from_secs(10);

/// A member that did not report its status is asked again within this time.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
