use std::sync::Arc;

use futures_util::future::join_all;

use super::Quorum;
use super::election::Election;
use super::link::Asking;
use super::reserving;
use super::rounds::{self, Leaving};
use super::settings::describe;
use super::waiting::{self, Reserve, Vigil};
use crate::BoxFuture;
use crate::admin::Admin;
use crate::attempt::{Attempt, Busy, Grant, Release, Renewal};
use crate::background;
use crate::claim::{Claim, Held};
use crate::error::Error;
use crate::fence::Fence;
use crate::guarantees::{Exclusion, Fencing, Guarantees, LeaseTerms};
use crate::health::{Health, MemberHealth};
use crate::inheritance::Inheritance;
use crate::inspection::Inspection;
use crate::queue::Wait;
use crate::records::Records;
use crate::store::Store;
use crate::telemetry::{AttemptEnd, Words as _, spans};

impl Store for Quorum {
    fn describe(&self) -> String {
        describe(&self.settings.members)
    }

    fn places(&self) -> Vec<String> {
        let members = self.settings.members.iter();
        members.map(|member| member.describe()).collect()
    }

    fn guarantees(&self) -> Guarantees {
        let one = self.first().guarantees();
        if self.links.len() == 1 {
            return one;
        }
        let exclusion = match one.exclusion {
            Exclusion::Process => Exclusion::Process,
            _ if self.roster.is_enforced() => Exclusion::Majority,
            _ => Exclusion::EveryMember,
        };
        Guarantees {
            exclusion,
            fencing: Fencing::CounterThenClock,
            ..one
        }
    }

    fn terms(&self) -> LeaseTerms {
        let one = self.first().terms();
        if self.links.len() == 1 {
            return one;
        }
        let set = self.roster.set();
        LeaseTerms::quorum(set.clock_tolerance, set.max_ttl)
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move {
            if let Some(grant) = self.inherit(claim) {
                return Ok(Attempt::Granted(grant));
            }
            let claim = Arc::new(self.for_one_permit(claim));
            let asking = self.asking(&claim);
            let limit = self.member_limit(claim.term());
            let span = spans::round(&claim, self.links.len());
            let (links, asked) = (&self.links, Arc::clone(&claim));
            let election = Election::new(links, asked, asking.clone(), limit, span.clone());
            let outcome = election.run().await;
            spans::decided(&span, AttemptEnd::of(&outcome).word());
            Ok(match outcome? {
                Attempt::Busy(busy) => Attempt::Busy(self.refused(&claim, &asking, busy)),
                Attempt::Granted(grant) => {
                    if let Asking::InTurn(vigil) = &asking {
                        self.was_granted(vigil);
                        self.reserve(&claim, grant.fence);
                    }
                    Attempt::Granted(grant)
                }
            })
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        let shortest = leases
            .iter()
            .map(|held| held.claim.term())
            .min()
            .unwrap_or_default();
        for Held { claim, .. } in leases {
            self.waits.held_as(claim);
        }
        Box::pin(rounds::renew(
            &self.links,
            leases,
            self.member_limit(shortest),
        ))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        let wait = match claim.wait {
            Wait::InTurn(waiter) => self.waits.give_back(waiter, claim),
            Wait::None | Wait::Barging => None,
        };
        let departure = self.waits.departure(claim);
        let leaving = Leaving { departure, wait };
        let limit = self.member_limit(claim.term());
        self.waits.end_reserve(claim.owner);
        Box::pin(async move {
            // It asks once this task gives way: by then the release is on its way.
            self.waits.call_next(claim, departure);
            rounds::release(&self.links, claim, leaving, limit).await
        })
    }

    fn may_bequeath(&self, claim: &Claim) -> bool {
        self.waits.reserve(claim.owner).is_some()
    }

    fn bequeath<'a>(&'a self, lease: &'a Inheritance) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(reserve) = self.waits.reserve(lease.claim.owner) else {
                return false;
            };
            // Before it waits for the members' word, which a release would have to wait for in vain.
            let is_left =
                self.waits.has_heir(lease) && reserve.is_had().await && self.waits.bequeath(lease);
            if is_left {
                self.give_back(&lease.claim);
            }
            is_left
        })
    }

    fn abandon(&self, claim: &Claim) {
        for link in &self.links {
            link.heal_no_more(claim.owner);
            link.see_through(claim.owner);
        }
        self.waits.end_reserve(claim.owner);
        self.give_back(claim);
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            join_all(self.links.iter().map(|link| link.settle())).await;
        })
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        match claim.wait {
            Wait::InTurn(waiter) => Box::pin(self.waits.due(waiter)),
            Wait::None | Wait::Barging => Box::pin(self.settings.ambient.poll_pause()),
        }
    }

    fn leave(&self, claim: &Claim) {
        let Wait::InTurn(waiter) = claim.wait else {
            return;
        };
        let Some(vigil) = self.waits.of(waiter) else {
            return;
        };
        let is_over = self.waits.leave(waiter).is_some();
        // From then on nothing is left to it any more.
        self.renounce(&vigil);
        if is_over {
            self.leave_queues(&vigil);
        }
    }

    // Members are of one kind: an optional trait that the first member has, all have.
    fn inspection(&self) -> Option<&dyn Inspection> {
        self.first().inspection().is_some().then_some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        self.first().admin().is_some().then_some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        self.first().records().is_some().then_some(self)
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }
}

impl Health for Quorum {
    fn members(&self) -> BoxFuture<'_, Vec<MemberHealth>> {
        Box::pin(self.roster.health())
    }
}

impl Quorum {
    /// The claim, if it is for any permit, for one and the same at all members.
    fn for_one_permit(&self, claim: &Claim) -> Claim {
        match claim.mode.permits() {
            Some(permits) if claim.slot.is_none() && self.links.len() > 1 => {
                claim.clone().with_slot(self.waits.pick(claim, permits))
            }
            _ => claim.clone(),
        }
    }

    /// How the members are to be asked for the claim.
    fn asking(&self, claim: &Claim) -> Asking {
        match claim.wait {
            Wait::None => Asking::Plainly,
            Wait::Barging => Asking::Barging,
            Wait::InTurn(waiter) => {
                self.run_errands();
                match self.waits.in_turn(waiter, &claim.key) {
                    None => Asking::Plainly,
                    Some(vigil) => {
                        vigil.begin(claim, &self.settings.ambient);
                        Asking::InTurn(vigil)
                    }
                }
            }
        }
    }

    /// Takes note of a refusal, and completes it.
    fn refused(&self, claim: &Claim, asking: &Asking, busy: Busy) -> Busy {
        self.waits.note_busy(&claim.key, &busy);
        match (asking, claim.wait) {
            (Asking::InTurn(vigil), _) => {
                self.waits.refused(vigil);
                vigil.refusal(busy)
            }
            (Asking::Plainly, Wait::InTurn(waiter)) => {
                self.waits.enter(waiter, &claim.key);
                busy
            }
            _ => busy,
        }
    }

    /// Takes note of a grant, and tells how long the hand-over took, if it was one.
    fn was_granted(&self, vigil: &Vigil) {
        self.waits.granted(vigil);
        self.tell_hand_over(vigil);
    }

    /// What was left to the waiter of `claim`. If that is of no use any more, another one has it.
    fn inherit(&self, claim: &Claim) -> Option<Grant> {
        let Wait::InTurn(waiter) = claim.wait else {
            return None;
        };
        let vigil = self.waits.of(waiter)?;
        let Some(grant) = self.waits.inherit(&vigil, claim) else {
            self.renounce(&vigil);
            return None;
        };
        self.leave_queues(&vigil);
        self.tell_hand_over(&vigil);
        Some(grant)
    }

    fn tell_hand_over(&self, vigil: &Vigil) {
        if let Some(told) = vigil.told() {
            let now = self.settings.ambient.clock.now();
            self.hand_over.record(now.since(told));
        }
    }

    /// Has the members count beyond the fences of those who may get the lock from this holder.
    fn reserve(&self, claim: &Arc<Claim>, fence: Fence) {
        let Some(greatest) = Reserve::greatest(fence, self.settings.ambient.clock.wall()) else {
            return;
        };
        let Some(reserve) = self.waits.begin_reserve(claim) else {
            return;
        };
        let (links, claim) = (self.links.clone(), Arc::clone(claim));
        let limit = self.member_limit(claim.term());
        background::spawn(async move {
            let is_had = reserving::reserve(&links, &claim, greatest, limit).await;
            reserve.asked(fence, greatest, is_had);
        });
    }

    /// The wait that was granted the claim has it no more.
    fn give_back(&self, claim: &Claim) {
        if let Wait::InTurn(waiter) = claim.wait
            && let Some(vigil) = self.waits.give_back(waiter, claim)
        {
            self.leave_queues(&vigil);
        }
    }

    /// The waiter does not want what was left to it: another one has it, or it is given back.
    fn renounce(&self, vigil: &Vigil) {
        let Some(lease) = vigil.renounce() else {
            return;
        };
        if self.waits.bequeath(&lease) {
            return;
        }
        let claim = &lease.claim;
        self.waits.end_reserve(claim.owner);
        let departure = self.waits.departure(claim);
        let leaving = Leaving {
            departure,
            wait: None,
        };
        let limit = self.member_limit(claim.term());
        let releasing = rounds::release(&self.links, claim, leaving, limit);
        self.waits.call_next(claim, departure);
        background::spawn(async move { drop(releasing.await) });
    }

    fn leave_queues(&self, vigil: &Vigil) {
        let queued = |place: &usize| vigil.is_queued(*place);
        for place in (0..self.links.len()).filter(queued) {
            self.links[place].start_leaving(vigil);
        }
    }

    /// Has somebody see to what members tell: on the runtime of the client that waits.
    fn run_errands(&self) {
        // Somebody else's client may have ended, and with it whoever saw to them.
        if let Ok(errands) = Arc::clone(&self.errands).try_lock_owned() {
            let links = self.links.iter().map(Arc::downgrade).collect();
            background::spawn(waiting::run_errands(links, errands));
        }
    }
}

#[cfg(test)]
mod tests;
