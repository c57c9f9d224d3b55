//! How the members of a quorum change: one at a time, so that each majority of the new members has a member
//! in common with each majority of the old ones. The next change waits until all earlier leases have ended.

use std::time::Duration;

use leasehold_types::{
    Entropy, Error, MemberId, MemberRecord, MemberRecordEdit, MemberSet, MemberStatus, exact_span,
    rough_span,
};

use super::{MemberAnswer, admission, not_yet, refuse, stated_set};
use crate::trust::{difference, old_enough, wait_of};

/// A change from one quorum to the next.
#[derive(Clone, Debug)]
pub struct Change {
    old: MemberSet,
    new: MemberSet,
}

impl Change {
    /// Returns the change from `old` to `new`. The new quorum has the limits of the old one, which its members
    /// state in their answers.
    ///
    /// # Errors
    ///
    /// If not exactly one member joins or leaves, or fewer than three members remain.
    pub fn new(old: &MemberSet, new: &MemberSet, answers: &[MemberAnswer]) -> Result<Self, Error> {
        let records = || answers.iter().filter_map(MemberAnswer::member_record);
        let old = stated_set(old, records());
        // If the change was interrupted, some members have their new record.
        let new = MemberSet::new(new.ids.clone(), old.max_ttl, old.clock_tolerance);
        let new = stated_set(&new, records());
        let old = MemberSet::new(old.ids, new.max_ttl, new.clock_tolerance);
        let joining = new.ids.iter().filter(|id| !old.ids.contains(id)).count();
        let leaving = old.ids.iter().filter(|id| !new.ids.contains(id)).count();
        if joining + leaving != 1 {
            return refuse(format!(
                "{joining} servers would join and {leaving} leave; change one server at a time, then wait {}",
                exact_span(wait_of(new.max_ttl))
            ));
        }
        if new.ids.len() < 3 {
            return refuse(format!(
                "refused: {} servers could not survive one failure; keep at least 3",
                new.ids.len()
            ));
        }
        Ok(Self { old, new })
    }

    /// Returns the new quorum.
    pub fn new_set(&self) -> &MemberSet {
        &self.new
    }

    /// Returns what to write to the members of the new quorum, in the order of their answers; `None` for a
    /// member that has its new record already. Write them one after the other, so that an interrupted
    /// change can be repeated.
    ///
    /// # Errors
    ///
    /// If a member does not answer, cannot be a member, or has another record than expected, or if the last
    /// change is too recent.
    pub fn edits(
        &self,
        answers: &[MemberAnswer],
        entropy: &dyn Entropy,
    ) -> Result<Vec<Option<MemberRecordEdit>>, Error> {
        let members: Result<Vec<_>, Error> = answers.iter().map(known).collect();
        let members = members?;
        let mut generations = Vec::new();
        for (id, status) in &members {
            self.check_member(id, status)?;
            let member_record = status.member_record.as_ref();
            let next = member_record.map_or(0, |member_record| {
                member_record.generation + u64::from(member_record.set != self.new)
            });
            generations.push(next);
        }
        let generation = MemberRecord::latest(generations).unwrap_or(0);
        let edit = |(id, status): &(&MemberId, &MemberStatus)| {
            let member_record = status.member_record.as_ref();
            if member_record.is_some_and(|member_record| member_record.set == self.new) {
                return None;
            }
            let stays = member_record.filter(|_| self.old.ids.contains(id));
            Some(MemberRecordEdit {
                expected: member_record.map(MemberRecord::epoch),
                set: self.new.clone(),
                generation,
                run: status.run.clone(),
                // The next client finds out whether the member is still durable.
                durable: stays.map_or(status.durable, |member_record| member_record.durable),
                data_generation: stays
                    .map_or_else(|| admission(id, answers, entropy), |it| it.data_generation),
                // A new member has a vote at once: the other members remember the leases.
                age: stays.is_none().then(|| old_enough(self.new.max_ttl)),
                seen: Vec::new(),
            })
        };
        Ok(members.iter().map(edit).collect())
    }

    /// Returns what to write to the member that leaves, unless its record is not one of the old quorum.
    pub fn dismissal(&self, status: MemberStatus) -> Option<MemberRecordEdit> {
        let member_record = status
            .member_record
            .filter(|member_record| member_record.set == self.old)?;
        Some(MemberRecordEdit {
            expected: Some(member_record.epoch()),
            set: self.new.clone(),
            generation: member_record.generation + 1,
            run: member_record.run,
            durable: member_record.durable,
            data_generation: member_record.data_generation,
            age: None,
            seen: Vec::new(),
        })
    }

    fn check_member(&self, id: &MemberId, status: &MemberStatus) -> Result<(), Error> {
        if let Some(why) = &status.unfit {
            return refuse(format!("{id} cannot be a member: {why}"));
        }
        let joins = !self.old.ids.contains(id);
        let Some(member_record) = &status.member_record else {
            let text = format!(
                "{id} has lost its quorum record; a client writes a new one once the other members \
                 answer, or `leasehold members readmit {}` does; then try again",
                id.as_str()
            );
            return if joins { Ok(()) } else { refuse(text) };
        };
        if member_record.set == self.new {
            return Ok(());
        }
        if joins {
            return match member_record.set.ids.contains(id) {
                true => refuse(format!(
                    "{id} already belongs to the quorum {}",
                    member_record.set
                )),
                false => Ok(()),
            };
        }
        self.check_record(id, status, member_record)
    }

    /// Checks the record of a member that stays.
    fn check_record(
        &self,
        id: &MemberId,
        status: &MemberStatus,
        member_record: &MemberRecord,
    ) -> Result<(), Error> {
        if member_record.set != self.old {
            return refuse(format!(
                "{id} belongs to another quorum: {}",
                difference(&member_record.set, &self.old)
            ));
        }
        if !member_record.is_formed() {
            return refuse(format!(
                "{id}: its quorum is not initialized; run `leasehold init`"
            ));
        }
        if member_record.run != status.run {
            return not_yet(format!(
                "{id} restarted; let a client acquire a lock, then try again"
            ));
        }
        let clock = status.clock.as_micros();
        let passed = Duration::from_micros(clock.saturating_sub(member_record.changed.as_micros()));
        let left = wait_of(self.new.max_ttl).saturating_sub(passed);
        // A member that lost its record waits, too: an interrupted change may have left it in the generation before.
        if member_record.configuration() > 1 && !left.is_zero() {
            return not_yet(format!(
                "{id} got this quorum's record {} ago, because the quorum was changed or the server had lost \
                 it, and earlier leases may still be valid; wait {} more",
                rough_span(passed),
                rough_span(left)
            ));
        }
        Ok(())
    }
}

/// Returns the status of a member that answered. A member without a record must not hold a lock.
fn known(answer: &MemberAnswer) -> Result<(&MemberId, &MemberStatus), Error> {
    let status = answer.status.as_ref();
    let status = status.map_err(|error| answer.named(error.clone()))?;
    if status.member_record.is_none() {
        let held = answer.held.as_ref();
        if let Some(key) = held.map_err(|error| answer.named(error.clone()))? {
            return refuse(format!(
                "{} holds lock {:?}; wait until it is released",
                answer.id,
                key.as_str()
            ));
        }
    }
    Ok((&answer.id, status))
}
