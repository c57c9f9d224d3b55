//! The state of one acquisition.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{
    BootInstant, Busy, Effect, Error, Fence, Incarnation, LockRequest, Mode, PermitSlot,
};
use typed_index_collections::ti_vec;

use crate::ballot::Ballot;
use crate::member::index::{MemberIndex, Members, PerMember};
use crate::operation::OperationId;

/// One call to take a lock. It lasts until its lease is released, or until everything that it left behind is given
/// back.
#[derive(Debug)]
pub(crate) struct Acquisition {
    pub(crate) id: OperationId,
    pub(crate) lock_request: Arc<LockRequest>,
    pub(super) began: BootInstant,
    pub(super) phase: Phase,
    /// The position in the queue, once it is drawn.
    pub(super) ticket: Option<u64>,
    pub(super) members: PerMember<MemberState>,
    /// Whether a round began before.
    pub(super) had_round: bool,
    /// How many rounds failed one after the other.
    pub(super) failures: u32,
    /// When to look again: at the end of the round or of a pause, or when a member asked for it.
    pub(super) timer: Option<BootInstant>,
    /// The position that the last busy event reported to the driver, if there was such an event.
    pub(super) reported_busy: Option<Option<u64>>,
    /// The number of the last outage that it reported to the driver.
    pub(super) reported_outage: Option<u64>,
    /// When a member first notified this waiter, since the last failed round.
    pub(super) notified_at: Option<BootInstant>,
    /// The permit that the next round prefers.
    pub(super) preferred: Option<PermitSlot>,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// No round is under way: it waits in queues, or no member was asked yet.
    Waiting,
    /// A round failed: no member is asked before this.
    Paused(BootInstant),
    /// Members were asked, and are not a majority yet.
    Round(Round),
    /// A majority granted the lease, with this fence. Late grants join it.
    Held(Fence),
    /// It is given back, or another operation continues with the lease.
    Over,
}

/// The state of an acquisition at one member.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberState {
    /// The number of the last attempt at this member. Replies to older ones are void.
    pub(crate) number: u32,
    /// An attempt is in flight.
    pub(crate) is_asked: bool,
    pub(crate) standing: Standing,
    /// When the member wants to be asked again.
    pub(crate) ask_at: Option<BootInstant>,
    /// The last attempt used the plain commands.
    pub(crate) is_plain: bool,
    /// The plain commands were tried in this round. They raised the counter to the proposal.
    pub(crate) tried: bool,
    /// An attempt without a reply may have left something there.
    pub(crate) uncertain: bool,
}

/// What a member last said about the attempt.
#[derive(Clone, Debug, Default)]
pub(crate) enum Standing {
    /// Not asked, or not in the queue.
    #[default]
    Out,
    /// In the queue, by its last answer.
    Queued(Busy),
    /// Refused, without a position in the queue.
    Refused(Busy),
    /// Granted: sent at, with this fence and permit, by this data.
    Granted(Granted),
    /// The member did not answer, or refused for another reason.
    Failed(Error),
}

#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) sent: BootInstant,
    /// `None` until it is drawn.
    pub(crate) fence: Option<Fence>,
    pub(crate) slot: Option<PermitSlot>,
    pub(crate) incarnation: Incarnation,
}

/// One attempt to get a majority at one time.
#[derive(Debug)]
pub(crate) struct Round {
    /// When to give everything back, if there is no majority. `None`: each member has its own limit.
    pub(crate) end: Option<BootInstant>,
    /// The same fence is proposed to all members.
    pub(crate) proposal: u64,
    /// Whether its plain commands set the expiry of the counters.
    pub(crate) expire: bool,
    /// The lock was granted before on these connections.
    pub(crate) is_known: bool,
    pub(crate) ballot: Ballot,
    /// How long it waits for members that are not connected yet, though a majority granted the lease.
    pub(super) awaits_until: Option<BootInstant>,
}

impl Acquisition {
    pub(super) fn new(
        id: OperationId,
        lock_request: Arc<LockRequest>,
        members: usize,
        began: BootInstant,
        preferred: Option<PermitSlot>,
    ) -> Self {
        Self {
            id,
            lock_request,
            began,
            phase: Phase::Waiting,
            ticket: None,
            members: ti_vec![MemberState::default(); members],
            had_round: false,
            failures: 0,
            timer: None,
            reported_busy: None,
            reported_outage: None,
            notified_at: None,
            preferred,
        }
    }

    pub(super) fn is_queued(&self) -> bool {
        self.lock_request.is_queued()
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.lock_request.mode == Mode::Exclusive
    }

    /// Whether it waits in the queue of the member, by its last answer.
    pub(crate) fn is_queued_at(&self, member: MemberIndex) -> bool {
        self.members[member].is_queued()
    }

    pub(crate) fn is_asking(&self) -> bool {
        !matches!(self.phase, Phase::Held(_) | Phase::Over)
    }

    pub(super) fn round(&self) -> Option<&Round> {
        match &self.phase {
            Phase::Round(round) => Some(round),
            _ => None,
        }
    }

    pub(super) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.phase {
            Phase::Round(round) => Some(round),
            _ => None,
        }
    }

    /// Whether it reported that another owner holds the lock.
    pub(crate) fn has_waited(&self) -> bool {
        self.reported_busy.is_some()
    }

    /// Returns the next round.
    pub(super) fn new_round(&mut self, proposal: u64, end: BootInstant) -> Round {
        let members = self.members.len();
        let ballot = match self.lock_request.mode {
            Mode::Exclusive => Ballot::new(members),
            Mode::Shared | Mode::Permit(_) => {
                Ballot::held_together(members, tie_breaker(&self.lock_request, self.failures))
            }
        };
        self.had_round = true;
        Round {
            end: Some(end),
            proposal,
            expire: false,
            is_known: false,
            ballot,
            awaits_until: None,
        }
    }

    /// Whether a round has nothing left to wait for: no request is in flight, and no member granted anything.
    pub(crate) fn is_round_over(&self) -> bool {
        let quiet =
            |member_state: &MemberState| !member_state.is_asked && member_state.granted().is_none();
        self.members.iter().all(quiet)
    }

    /// The members' refusals combined, with the position that the waiter has on a majority.
    pub(crate) fn busy(&self) -> Busy {
        let refusals: Vec<&Busy> = self
            .members
            .iter()
            .filter_map(MemberState::refusal)
            .collect();
        let weight = |busy: &Busy| {
            refusals
                .iter()
                .filter(|it| it.holder == busy.holder)
                .count()
        };
        let heaviest = refusals.iter().max_by_key(|busy| weight(busy));
        let mut busy = heaviest.map(|busy| (*busy).clone()).unwrap_or_default();
        let mut positions: Vec<u64> = refusals.iter().filter_map(|it| it.position).collect();
        positions.sort_unstable();
        busy.position = positions.get(positions.len() / 2).copied();
        busy.cannot_notify = refusals.iter().any(|it| it.cannot_notify);
        busy
    }

    /// The instant from which the lease counts: a majority of `needed` of these members was asked then or
    /// later.
    pub(crate) fn since(&self, counted: Members, needed: usize) -> Option<BootInstant> {
        let sent = || {
            let members = counted.iter().map(|member| &self.members[member]);
            members.filter_map(|member_state| Some(member_state.granted()?.sent))
        };
        let is_early_enough =
            |since: &BootInstant| sent().filter(|it| it >= since).count() >= needed;
        sent().filter(is_early_enough).max()
    }

    /// Whether a lease may have ended at a member that granted it. The clocks of members may run faster than
    /// this one.
    pub(crate) fn has_ended_grant(&self, now: BootInstant) -> bool {
        let term = self.lock_request.usable_ttl();
        let granted = self.members.iter().filter_map(MemberState::granted);
        let mut ends = granted.map(|it| it.sent + (term - term / 10));
        ends.any(|end| end <= now)
    }

    /// Whether that many members granted a permit, even if the permits differ.
    pub(crate) fn is_granted_by(&self, needed: usize) -> bool {
        let granted = self.members.iter().filter_map(MemberState::granted);
        granted.count() >= needed
    }

    /// The permit that most members granted.
    pub(crate) fn commonest_slot(&self) -> Option<PermitSlot> {
        let slots: Vec<PermitSlot> = self.members.iter().filter_map(MemberState::slot).collect();
        let count = |slot: &PermitSlot| slots.iter().filter(|it| *it == slot).count();
        slots
            .iter()
            .copied()
            .max_by_key(|slot| (count(slot), std::cmp::Reverse(*slot)))
    }
}

impl MemberState {
    /// An attempt is sent. Returns its number.
    pub(super) fn ask(&mut self) -> u32 {
        self.number += 1;
        self.is_asked = true;
        self.number
    }

    pub(crate) fn refusal(&self) -> Option<&Busy> {
        match &self.standing {
            Standing::Queued(busy) | Standing::Refused(busy) => Some(busy),
            Standing::Out | Standing::Granted(_) | Standing::Failed(_) => None,
        }
    }

    pub(crate) fn granted(&self) -> Option<&Granted> {
        match &self.standing {
            Standing::Granted(granted) => Some(granted),
            _ => None,
        }
    }

    pub(crate) fn slot(&self) -> Option<PermitSlot> {
        self.granted()?.slot
    }

    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.standing, Standing::Queued(_))
    }

    /// Whether the member may have a lease or an entry of this acquisition.
    pub(crate) fn may_have(&self) -> bool {
        self.is_asked || self.uncertain || self.is_queued() || self.granted().is_some()
    }

    /// The member failed. The request may have taken effect.
    pub(crate) fn fail(&mut self, error: Error) {
        self.is_asked = false;
        self.uncertain |= error.effect() == Effect::Unknown;
        self.standing = Standing::Failed(error);
    }
}

/// Chance that differs between the rounds of an acquisition and between acquisitions.
fn tie_breaker(lock_request: &LockRequest, failures: u32) -> u64 {
    let text = lock_request.owner.to_ascii();
    let mut bits = u64::from(failures);
    for byte in text {
        bits = bits.rotate_left(5) ^ u64::from(byte);
        bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    bits
}

/// How long a round waits for a majority. It follows the round trip and doubles with each failure.
pub(crate) fn round_timeout(round_trip: Duration, failures: u32) -> Duration {
    let base = Duration::from_millis(10) + round_trip * 4;
    let longest = Duration::from_millis(800).max(base);
    (base * 2_u32.pow(failures.min(10))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_length_follows_network_latency() {
        let round_timeout =
            |millis, failures| round_timeout(Duration::from_millis(millis), failures);
        assert_eq!(round_timeout(1, 0), Duration::from_millis(14));
        assert_eq!(round_timeout(1, 2), Duration::from_millis(56));
        assert_eq!(round_timeout(1, 99), Duration::from_millis(800));
        assert_eq!(round_timeout(300, 5), Duration::from_millis(1_210));
    }
}
