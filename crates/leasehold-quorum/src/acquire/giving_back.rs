//! Gives back grants that did not become a majority.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Busy, Error, ErrorKind, LockRequest, Owner};

use super::state::{Acquisition, MemberState, Phase, Standing, round_timeout};
use crate::ballot::majority;
use crate::errors::too_few;
use crate::member::index::Members;
use crate::membership::Access;
use crate::messages::{Lease, Requeue};
use crate::net::{GivenBack, Net};
use crate::operation::{Outcome, Progress};

impl Acquisition {
    /// The client may not ask a majority at present, or a majority has no vote. A waiter without a majority
    /// keeps no position, because it would block the lock for others. It asks again when a majority has a
    /// vote.
    pub(super) fn leave_queues(&mut self, net: &mut Net) {
        self.give_back(net, Then::AskAgain);
        self.phase = Phase::Waiting;
        self.reported_busy = None;
        for state in &mut self.members {
            state.standing = Standing::Out;
            state.ask_at = None;
        }
        let (now, members) = (net.now.instant, self.members.len());
        let (mut failed, mut pending) = (Members::default(), 0);
        for member in self.members.keys() {
            match net.membership.access(now, member, self.began) {
                Access::Open if net.membership.counts(member, now, None).is_ok() => {}
                Access::Open | Access::Closed => failed.insert(member),
                Access::Pending => pending += 1,
            }
        }
        if members - failed.len() >= majority(members) {
            return;
        }
        let outage = net.outage(failed, pending);
        let (error, number) = (outage.error.clone(), outage.number);
        if !error.is_retryable() {
            self.withdraw(net);
            return net.finish(self.id, Outcome::Failed(error));
        }
        // Votes may return with time alone.
        let again = error.eligible_after().unwrap_or(PAUSE_MAX);
        net.resume_by(now + again.clamp(PAUSE_MIN, PAUSE_MAX));
        if self.reported_outage.replace(number) != Some(number) {
            net.progress(self.id, Progress::Unavailable(error));
        }
    }

    /// A majority can be asked, but grants nothing at present, for a reason other than a holder.
    pub(super) fn leave_and_pause(&mut self, net: &mut Net, error: Error) {
        self.give_back(net, Then::AskAgain);
        let longest = round_timeout(net.round_trip(), self.failures);
        // The votes may return with time alone. That of a clock at the edge of the tolerance returns at once, and is lost
        // again with each answer.
        let again = error.eligible_after().unwrap_or_default();
        let pause = again.min(PAUSE_MAX).max(net.random_part(longest));
        self.phase = Phase::Paused(net.now.instant + pause);
        self.failures += 1;
        self.reported_busy = None;
        self.unavailable(net, error);
    }

    /// Tells the caller why the wait continues. What a request may have done is the concern of the engine.
    fn unavailable(&mut self, net: &mut Net, error: Error) {
        net.progress(self.id, Progress::Unavailable(error.without_effect()));
    }

    /// The round found no majority in time: it gives everything back, and the waiter keeps its ticket. It pauses if
    /// another round at once would get the same grants.
    pub(super) fn fail_round(&mut self, net: &mut Net, pauses: bool) {
        self.phase = Phase::Waiting;
        if self.is_round_over() {
            return;
        }
        if self.meets_other_permits() {
            // Each of two such waiters would take its part of the members again at once.
            let open = self.members.iter().filter(|it| it.is_asked).count();
            let error = too_few(self.members.len(), open, self.failures(net));
            return self.leave_and_pause(net, error);
        }
        let longest = round_timeout(net.round_trip(), self.failures);
        self.failures += 1;
        self.notified_at = None;
        self.give_back(net, Then::KeepPlace);
        let now = net.now.instant;
        if pauses {
            self.phase = Phase::Paused(now + net.random_part(longest));
        }
        for state in &mut self.members {
            if !state.is_queued() {
                state.ask_at = Some(now);
            }
        }
        // The answers of this round are void from now on, and those of the release say nothing about the queue.
        self.report_busy(net);
    }

    /// Whether a majority granted permits, but not the same one. Waiters that hold each other's permits must not meet
    /// again at once.
    pub(super) fn has_differing_permits(&self) -> bool {
        let commonest = self.commonest_slot();
        let granted = |slot| self.members.iter().filter(|it| it.slot() == slot).count();
        let needed = majority(self.members.len());
        commonest.is_some() && granted(commonest) < needed && self.is_granted_by(needed)
    }

    /// Whether members refused it because the lock has another number of permits, and no majority granted one.
    fn meets_other_permits(&self) -> bool {
        let differs = |it: &MemberState| match &it.standing {
            Standing::Failed(error) => error.kind() == ErrorKind::PermitsDiffer,
            _ => false,
        };
        self.members.iter().any(differs) && !self.is_granted_by(majority(self.members.len()))
    }

    /// Gives back what members granted or may have granted. From then on, replies to requests that were
    /// sent before are void, and the owner of the round never asks again: its release may arrive at any
    /// time, even after the wait got the lock.
    pub(super) fn give_back(&mut self, net: &mut Net, then: Then) {
        self.preferred = self.commonest_slot().or(self.preferred);
        let ticket = self.ticket.filter(|_| then == Then::KeepPlace);
        let lease = Lease::of(&self.lock_request);
        let mut back = Vec::new();
        for (member, state) in self.members.iter_mut_enumerated() {
            if !state.may_have() {
                continue;
            }
            state.number += 1;
            state.is_asked = false;
            state.ask_at = None;
            state.uncertain = false;
            let is_connected = net.members[member].connected.is_some();
            let former = std::mem::take(&mut state.standing);
            if ticket.is_some() && is_connected {
                state.standing = match former {
                    Standing::Queued(busy) => Standing::Queued(busy),
                    _ => Standing::Queued(Busy::default()),
                };
            }
            back.push(member);
        }
        if back.is_empty() {
            return;
        }
        let next = match then {
            Then::End => None,
            Then::AskAgain | Then::KeepPlace => Some(self.next_owner(net)),
        };
        let requeue = next.zip(ticket);
        let requeue = requeue.map(|(owner, ticket)| Requeue { owner, ticket });
        for member in back {
            if requeue.is_some() {
                // The server drops a waiter whose client is not present.
                net.send_presence(member);
            }
            net.given_back.push(GivenBack {
                member,
                lease: lease.clone(),
                requeue,
            });
        }
    }

    /// Draws the owner of the next round. It keeps the instant at which the wait began.
    fn next_owner(&mut self, net: &mut Net) -> Owner {
        let former = self.lock_request.owner;
        let next = Owner::at(former.client(), former.since(), &*net.entropy);
        self.lock_request = Arc::new(LockRequest::clone(&self.lock_request).with_owner(next));
        net.owners.remove(&former);
        net.know_owner(&self.lock_request, self.id);
        next
    }
}

/// What an acquisition does after it gave its round back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    End,
    /// It leaves the queues, and asks again later with the same ticket.
    AskAgain,
    /// It stays in the queues with its ticket.
    KeepPlace,
}

/// The shortest pause before a waiter without votes asks again.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause before a waiter without votes asks again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
