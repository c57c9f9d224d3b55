//! The usual case: a lock that is simply free, taken by plain commands.

use std::sync::Arc;

use leasehold_types::{BootInstant, Fence, LockRequest, Mode};

use super::asking::{first_proposal, round_limit};
use super::state::{Acquisition, Granted, Phase, Standing};
use crate::ballot::{Vote, majority};
use crate::member::index::{MemberIndex, Members};
use crate::member::{Answered, Task};
use crate::membership::Access;
use crate::messages::{Reply, Request};
use crate::net::{Net, Timer};
use crate::operation::operations::Next;
use crate::operation::{Acquired, OperationId, Outcome};

/// An acquisition, in one of two forms.
#[derive(Debug)]
pub(crate) enum Acquiring {
    Plain(Plain),
    Ordinary(Box<Acquisition>),
}

/// All members were asked at one instant, with plain commands and the same proposal, and those that answered granted
/// it. Anything else makes it an ordinary acquisition, which takes in the event.
#[derive(Debug)]
pub(crate) struct Plain {
    id: OperationId,
    lock_request: Arc<LockRequest>,
    /// Proposed to each member.
    fence: Fence,
    began: BootInstant,
    /// When the round of a waiter ends.
    end: BootInstant,
    timer: Option<BootInstant>,
    /// The members that granted the lease. Their data is still the same.
    granted: Members,
    is_held: bool,
}

/// The greatest quorum that has a usual case.
const MEMBERS_MAX: usize = 5;

/// The number of the attempt at each member.
const NUMBER: u32 = 1;

impl Acquiring {
    /// The timer is due. [`ask_due`](Self::ask_due) follows.
    pub(crate) fn wake(&mut self, net: &mut Net) -> Next {
        if let Self::Plain(plain) = self
            && plain.extends_round(net)
        {
            return Next::Runs;
        }
        self.ordinary(net).wake(net)
    }

    /// Asks the members that are due to be asked again.
    pub(crate) fn ask_due(&mut self, net: &mut Net) -> Next {
        match self {
            Self::Plain(_) => Next::Runs,
            Self::Ordinary(it) => it.ask_due(net),
        }
    }

    /// A member answered an attempt.
    pub(crate) fn answered(
        &mut self,
        net: &mut Net,
        from: &Answered,
        number: u32,
        reply: Reply,
    ) -> Next {
        if let Self::Plain(plain) = self
            && plain.granted(net, from, &reply)
        {
            return Next::Runs;
        }
        self.ordinary(net).answered(net, from, number, reply)
    }

    /// Makes the acquisition an ordinary one: something unusual happened.
    pub(crate) fn ordinary(&mut self, net: &Net) -> &mut Acquisition {
        if let Self::Plain(plain) = self {
            *self = Self::Ordinary(Box::new(plain.to_ordinary(net)));
        }
        match self {
            Self::Ordinary(it) => it,
            Self::Plain(_) => unreachable!("it was made ordinary"),
        }
    }

    /// Returns the ordinary acquisition, if it is one. In the usual case nothing is queued anywhere.
    pub(crate) fn as_ordinary(&self) -> Option<&Acquisition> {
        match self {
            Self::Plain(_) => None,
            Self::Ordinary(it) => Some(it),
        }
    }

    pub(crate) fn lock_request(&self) -> &Arc<LockRequest> {
        match self {
            Self::Plain(it) => &it.lock_request,
            Self::Ordinary(it) => &it.lock_request,
        }
    }

    /// Whether it has no majority yet.
    pub(crate) fn is_asking(&self) -> bool {
        match self {
            Self::Plain(it) => !it.is_held,
            Self::Ordinary(it) => it.is_asking(),
        }
    }

    /// The member is about to answer from other data than those that granted the lease.
    pub(crate) fn data_changed(&mut self, net: &Net, member: MemberIndex) {
        if matches!(self, Self::Plain(it) if it.granted.contains(member)) {
            self.ordinary(net);
        }
    }

    /// The connection broke.
    pub(crate) fn disconnected(&mut self, member: MemberIndex) {
        if let Self::Ordinary(it) = self {
            it.disconnected(member);
        }
    }

    /// Ends the acquisition. From now on, nothing finds it.
    pub(crate) fn forget(&mut self, net: &mut Net) {
        match self {
            Self::Plain(it) => it.forget(net),
            Self::Ordinary(it) => it.forget(net),
        }
    }
}

impl Plain {
    /// Asks all members, if this is the usual case.
    pub(crate) fn begin(
        net: &mut Net,
        id: OperationId,
        lock_request: &Arc<LockRequest>,
    ) -> Option<Self> {
        #[cfg(test)]
        if net.never_plain {
            return None;
        }
        let (now, members) = (net.now.instant, net.members.len());
        let known = net.known_locks.get(&lock_request.key);
        let is_known = known.is_some_and(|known| known.is_granted);
        let is_usual = members <= MEMBERS_MAX
            && lock_request.mode == Mode::Exclusive
            && !lock_request.barges
            && net.has_no_known_waiters(&lock_request.key)
            && net.members.keys().all(|member| {
                net.members[member].takes_plain_commands(is_known, now)
                    && net.membership.access(now, member, now) == Access::Open
                    && net.membership.lacks_vote(now, member).is_none()
            });
        let fence = Fence::new(first_proposal(lock_request)).filter(|_| is_usual)?;
        let mut plain = Self {
            id,
            lock_request: Arc::clone(lock_request),
            fence,
            began: now,
            end: now + round_limit(net, lock_request, 0),
            timer: None,
            granted: Members::default(),
            is_held: false,
        };
        let limit = net.limit_of(lock_request.usable_ttl());
        let expire = net.sets_expiry(&lock_request.key, known);
        let request = Request::TryAcquire {
            lock_request: Arc::clone(lock_request),
            proposal: fence.get(),
            expire,
        };
        net.send_to_all(|| Task::Attempt(id, NUMBER), request, limit);
        // The round on one member ends with its request.
        if lock_request.waits && members > 1 {
            net.set_timer(Timer::Acquire(id), &mut plain.timer, Some(plain.end));
        }
        Some(plain)
    }

    /// Continues the round, whose time is up, while a member that owes it an answer is at work.
    fn extends_round(&mut self, net: &mut Net) -> bool {
        if !net.has_majority(self.began) {
            return false;
        }
        let owing = net
            .members
            .keys()
            .filter(|member| !self.granted.contains(*member));
        let Some(end) = net.round_goes_on(owing) else {
            return false;
        };
        (self.end, self.timer) = (end, None);
        net.set_timer(Timer::Acquire(self.id), &mut self.timer, Some(end));
        true
    }

    /// Takes in a grant, and returns whether that was all.
    fn granted(&mut self, net: &mut Net, from: &Answered, reply: &Reply) -> bool {
        if !matches!(reply, Reply::Granted { fence, .. } if *fence == self.fence) {
            return false;
        }
        let (now, members) = (net.now.instant, net.members.len());
        let mut granted = self.granted;
        granted.insert(from.member);
        if self.is_held || granted.len() < majority(members) {
            self.granted = granted;
            return true;
        }
        let usable = self.lock_request.usable_ttl();
        let is_late = self.began + (usable - usable / 10) <= now;
        let is_decided = !is_late
            && net.membership.check_ttl(&self.lock_request).is_ok()
            && granted.iter().all(|member| {
                let data = net.members[member].data();
                net.membership.counts(member, self.began, data).is_ok()
            })
            && net
                .members
                .keys()
                .all(|member| net.membership.access(now, member, self.began) != Access::Pending);
        if !is_decided {
            return false;
        }
        (self.granted, self.is_held) = (granted, true);
        net.set_timer(Timer::Acquire(self.id), &mut self.timer, None);
        let acquired = Acquired {
            owner: self.lock_request.owner,
            fence: self.fence,
            slot: None,
            term: net.membership.term(&self.lock_request, self.began),
            notified_at: None,
        };
        net.finish(self.id, Outcome::Acquired(acquired));
        true
    }

    /// Returns the ordinary form.
    fn to_ordinary(&self, net: &Net) -> Acquisition {
        let (lock_request, fence) = (Arc::clone(&self.lock_request), self.fence);
        let slot = lock_request.slot;
        let mut ordinary =
            Acquisition::new(self.id, lock_request, net.members.len(), self.began, slot);
        let mut round = ordinary.new_round(fence.get(), self.end);
        for (member, state) in ordinary.members.iter_mut_enumerated() {
            state.ask();
            state.is_plain = true;
            state.tried = true;
            let data = net.members[member].data();
            if let Some(incarnation) = data.filter(|_| self.granted.contains(member)).cloned() {
                state.is_asked = false;
                state.standing = Standing::Granted(Granted {
                    sent: self.began,
                    fence: Some(fence),
                    slot: None,
                    incarnation,
                });
                round.ballot.vote(member, Vote::Granted(fence));
            }
        }
        ordinary.timer = self.timer;
        ordinary.phase = match self.is_held {
            true => Phase::Held(fence),
            false => Phase::Round(round),
        };
        ordinary
    }

    /// The acquisition ends. From now on, nothing finds it.
    fn forget(&mut self, net: &mut Net) {
        net.set_timer(Timer::Acquire(self.id), &mut self.timer, None);
        net.forget_owner(&self.lock_request, self.id);
    }
}
