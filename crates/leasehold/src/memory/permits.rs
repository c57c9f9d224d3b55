//! Locks that have permits: which one a claim gets, and to whom the free ones are offered.

use super::queue::{Entry, Offering, Step};
use super::slot::Slot;
use crate::attempt::Attempt;
use crate::claim::{Claim, Mode};
use crate::error::{Error, ErrorKind};
use crate::owner::Owner;
use crate::permits::{self, Permits, Slots};
use crate::queue::Ticket;

impl Slot {
    /// Fails where other permits are held, by their number, and where there is none such as `claim`
    /// names.
    pub(super) fn check_permits(&self, claim: &Claim) -> Result<(), Error> {
        let Some(wanted) = claim.mode.permits() else {
            return Ok(());
        };
        if let Some(slot) = claim.slot {
            permits::Slot::new(slot.get(), wanted).map_err(|error| error.with_key(&claim.key))?;
        }
        match self.permits() {
            Some(there) if there != wanted => {
                let text = format!("the lock is in use with {there} permits, not {wanted}");
                Err(Error::new(ErrorKind::PermitsDiffer, text).with_key(&claim.key))
            }
            _ => Ok(()),
        }
    }

    /// How many permits it has, while one is held.
    pub(super) fn permits(&self) -> Option<Permits> {
        let first = self.leases.first()?;
        first.claim.mode.permits()
    }

    /// Which of so many permits nobody holds.
    pub(super) fn free_permits(&self, permits: Permits) -> Slots {
        let leases = self.leases.iter().map(|lease| &lease.claim);
        if leases.clone().any(|claim| claim.mode.permits().is_none()) {
            return Slots::default();
        }
        let held: Slots = leases.filter_map(|claim| claim.slot).collect();
        let free = |slot: &permits::Slot| !held.contains(*slot);
        permits.slots().filter(free).collect()
    }

    /// The permit that a claim gets, if no lease is in its way: the one that it names, or the lowest.
    pub(super) fn permit_for(&self, claim: &Claim) -> Option<permits::Slot> {
        let free = self.free_permits(claim.mode.permits()?);
        match claim.slot {
            Some(slot) => free.contains(slot).then_some(slot),
            None => free.iter().next(),
        }
    }

    /// An attempt in turn, while permits are held.
    pub(super) fn acquire_permit(
        &mut self,
        claim: &Claim,
        ticket: Ticket,
        step: &mut Step<'_>,
    ) -> Result<Attempt, Error> {
        self.queue.enqueue(ticket, Entry::of(claim), step.now);
        let slot = self.permit_for(claim);
        let its_turn = match self.offering(Some((ticket, slot)), step) {
            Some(offering) => self.queue.offer(&offering, step),
            None => false,
        };
        if its_turn && slot.is_some() {
            return self.admit(claim, Some(ticket.waiter), step);
        }
        if its_turn {
            self.queue.expect(ticket, step.now);
        }
        Ok(self.refuse(claim, ticket, its_turn, step.now))
    }

    /// Offers free permits to those whose turn it is, while one is held.
    pub(super) fn offer_permits(&mut self, step: &mut Step<'_>) {
        if let Some(offering) = self.offering(None, step) {
            self.queue.offer(&offering, step);
        }
    }

    /// Takes a waiter out, while permits are held; `false` if none are.
    pub(super) fn leave_offers(&mut self, waiter: Owner, step: &mut Step<'_>) -> bool {
        let offering = self.offering(None, step);
        if let Some(offering) = &offering {
            self.queue.leave_offers(waiter, offering, step);
        }
        offering.is_some()
    }

    /// What is to be had, while permits are held.
    fn offering(
        &self,
        asking: Option<(Ticket, Option<permits::Slot>)>,
        step: &Step<'_>,
    ) -> Option<Offering> {
        let permits = self.permits()?;
        Some(Offering {
            mode: Mode::Permit(permits),
            free: self.free_permits(permits),
            soonest: self.first_lease()?.end.since(step.now),
            asking,
        })
    }
}
