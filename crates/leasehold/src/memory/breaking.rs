use std::collections::VecDeque;

use super::MemoryStore;
use super::queue::Step;
use super::slot::Slot;
use crate::BoxFuture;
use crate::admin::Admin;
use crate::breaking::{BreakRecord, Broken};
use crate::claim::{Claim, Mode};
use crate::clock::BootInstant;
use crate::error::Error;
use crate::key::Key;
use crate::owner::Owner;

impl Admin for MemoryStore {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>> {
        Box::pin(
            async move { Ok(self.with_queue(key, |slot, step| slot.break_lease(record, step))) },
        )
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(async move { Ok(self.with_slot(key, |slot, now| slot.breaks.last(now))) })
    }
}

/// How a key was broken.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaks {
    /// Whose leases, the last ones.
    owners: VecDeque<Owner>,
    last: Option<(BreakRecord, BootInstant)>,
}

impl Breaks {
    /// Whether the lease of `owner` was broken.
    pub(super) fn concern(&self, owner: Owner) -> bool {
        self.owners.contains(&owner)
    }

    fn remember(&mut self, owner: Owner) {
        if !self.concern(owner) {
            self.owners.push_back(owner);
        }
        if self.owners.len() > REMEMBERED_MAX {
            self.owners.pop_front();
        }
    }

    fn last(&self, now: BootInstant) -> Option<BreakRecord> {
        let kept = self.last.as_ref().filter(|(_, end)| now < *end);
        kept.map(|(record, _)| record.clone())
    }
}

/// So many owners whose lease was broken are known at most. Who is not known any more does not hold the
/// lock either.
const REMEMBERED_MAX: usize = 16;

impl Slot {
    fn break_lease(&mut self, record: &BreakRecord, step: &mut Step<'_>) -> Broken {
        self.breaks.remember(record.owner);
        let is_meant = |claim: &Claim| claim.owner == record.owner && claim.mode == Mode::Exclusive;
        let Some(at) = self.leases.iter().position(|lease| is_meant(&lease.claim)) else {
            return Broken::new(false, None);
        };
        self.breaks.last = Some((record.clone(), step.now + BreakRecord::KEPT));
        if !record.at_once {
            self.leases[at].broken = true;
            return Broken::new(true, Some(self.leases[at].end.since(step.now)));
        }
        self.leases.remove(at);
        self.queue.hand_over(None, step);
        Broken::new(true, None)
    }
}
