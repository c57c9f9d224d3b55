use std::time::Duration;

use super::breaking::Breaks;
use super::queue::{Entry, Queue, Step};
use crate::attempt::{Attempt, Busy, Grant, LostReason, Release, Renewal};
use crate::claim::{Claim, Held, Mode};
use crate::clock::BootInstant;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::holder::Holder;
use crate::member::Seal;
use crate::owner::Owner;
use crate::queue::{Departure, Ticket, Turn};

/// All that is known of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// The greatest fence ever granted or sealed. Outlives every lease.
    pub(super) counter: u64,
    pub(super) leases: Vec<Lease>,
    pub(super) queue: Queue,
    pub(super) breaks: Breaks,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) claim: Claim,
    pub(super) fence: Fence,
    pub(super) end: BootInstant,
    /// It only keeps others out any more.
    pub(super) broken: bool,
}

impl Slot {
    /// Drops what is over.
    pub(super) fn expire(&mut self, now: BootInstant) {
        self.leases.retain(|lease| now < lease.end);
        self.queue.expire(now);
    }

    /// An attempt of one that has no place in the queue.
    pub(super) fn acquire(&mut self, claim: &Claim, step: &mut Step<'_>) -> Result<Attempt, Error> {
        if let Some(granted) = self.granted_before(claim) {
            return Ok(granted);
        }
        self.check_permits(claim)?;
        let overtakes = !self.is_free() && !self.queue.is_empty();
        let is_kept = self.queue.is_reserved() || overtakes;
        if !self.lets_in(claim) || is_kept {
            return Ok(Attempt::Busy(self.refusal(claim, !is_kept, step.now)));
        }
        self.admit(claim, None, step)
    }

    /// An attempt in the order of tickets, or ahead of it.
    pub(super) fn acquire_in_turn(
        &mut self,
        claim: &Claim,
        turn: Turn,
        step: &mut Step<'_>,
    ) -> Result<Attempt, Error> {
        self.queue.hear_of(claim.owner.client());
        if let Some(granted) = self.granted_before(claim) {
            return Ok(granted);
        }
        self.check_permits(claim)?;
        let ticket = match turn {
            Turn::Queued(ticket) => ticket,
            Turn::Barging if self.lets_in(claim) => return self.admit(claim, None, step),
            Turn::Barging => return Ok(Attempt::Busy(self.refusal(claim, true, step.now))),
        };
        if claim.mode.permits().is_some() && self.permits().is_some() {
            return self.acquire_permit(claim, ticket, step);
        }
        let its_turn = if self.is_free() {
            self.falls_to(claim, ticket, step)
        } else {
            self.lets_in(claim) && !self.queue.keeps_reader_out(ticket, step)
        };
        if its_turn {
            return self.admit(claim, Some(ticket.waiter), step);
        }
        self.queue.enqueue(ticket, Entry::of(claim), step.now);
        Ok(self.refuse(claim, ticket, false, step.now))
    }

    /// Ends the lease of `claim`, and does with a lock that is free then what `departure` says.
    pub(super) fn depart(
        &mut self,
        claim: &Claim,
        departure: &Departure,
        step: &mut Step<'_>,
    ) -> Release {
        if let Departure::Requeue(ticket) = departure {
            self.queue.enqueue(*ticket, Entry::of(claim), step.now);
        }
        let before = self.leases.len();
        self.leases
            .retain(|lease| lease.claim.owner != claim.owner || lease.broken);
        let held = self.leases.len() < before;
        if self.is_free() && !self.queue.is_reserved() {
            match departure {
                Departure::HandOver if held => {
                    self.queue.hand_over(None, step);
                }
                Departure::LeaveFree(span) if held => self.queue.leave_free(*span, step),
                Departure::Requeue(_) => {
                    self.queue.hand_over(None, step);
                }
                Departure::HandOver | Departure::LeaveFree(_) => {}
            }
        } else if held || matches!(departure, Departure::Requeue(_)) {
            self.offer_permits(step);
        }
        if held {
            Release::Released
        } else {
            Release::WasLost
        }
    }

    pub(super) fn leave_queue(&mut self, waiter: Owner, step: &mut Step<'_>) {
        let kept_readers_out = self.queue.keeps_readers_out(waiter);
        if self.queue.is_first_alone(waiter) {
            self.queue.ask_anew();
        }
        if !self.leave_offers(waiter, step) {
            self.queue.leave(waiter, self.rest(step.now), step);
        }
        if kept_readers_out && self.is_shared() {
            self.queue.call_readers(None, step);
        }
    }

    /// Renews a lease, or makes it shared. What is shared is lost to a late message of the exclusive
    /// claim it was.
    pub(super) fn renew(&mut self, Held { claim, fence }: &Held, step: &mut Step<'_>) -> Renewal {
        if self.breaks.concern(claim.owner) {
            return Renewal::Lost(LostReason::Broken);
        }
        if self.is_free() {
            return Renewal::Lost(LostReason::Gone);
        }
        let Some(lease) = self.lease_of(claim) else {
            return Renewal::Lost(LostReason::Taken);
        };
        let downgrades = (lease.claim.mode, claim.mode) == (Mode::Exclusive, Mode::Shared);
        if lease.claim.mode != claim.mode && !downgrades {
            return Renewal::Lost(LostReason::Taken);
        }
        (lease.claim.mode, lease.fence) = (claim.mode, lease.fence.max(*fence));
        lease.end = lease.end.max(step.now + claim.ttl);
        if downgrades {
            self.queue.call_readers(None, step);
        }
        Renewal::Renewed
    }

    pub(super) fn seal(&mut self, claim: &Claim, fence: Fence) -> Seal {
        if self.lease_of(claim).is_none() {
            return Seal::NotHeld;
        }
        match Fence::new(self.counter) {
            Some(counter) if claim.mode != Mode::Exclusive && counter >= fence => {
                Seal::Taken(counter)
            }
            _ => {
                self.counter = self.counter.max(fence.get());
                Seal::Sealed
            }
        }
    }

    pub(super) fn heal(&mut self, held: &Held, now: BootInstant) {
        let kept_free = self.queue.is_reserved() || self.queue.has_gap();
        let is_kept_out = kept_free || self.breaks.concern(held.claim.owner);
        if held.claim.mode == Mode::Exclusive && self.is_free() && !is_kept_out {
            self.counter = self.counter.max(held.fence.get());
            self.hold(&held.claim, held.fence, now);
        }
    }

    pub(super) fn lease_of(&mut self, claim: &Claim) -> Option<&mut Lease> {
        self.leases
            .iter_mut()
            .find(|lease| lease.claim.owner == claim.owner && !lease.broken)
    }

    /// The answer to a claim that holds already.
    fn granted_before(&mut self, claim: &Claim) -> Option<Attempt> {
        let own = self.lease_of(claim)?;
        Some(Attempt::Granted(Grant::new(own.fence)))
    }

    /// Whether nobody holds it. It may be reserved.
    fn is_free(&self) -> bool {
        self.leases.is_empty()
    }

    /// Whether readers hold it.
    fn is_shared(&self) -> bool {
        let mut leases = self.leases.iter();
        leases.any(|lease| lease.claim.mode == Mode::Shared)
    }

    /// Whether no lease keeps `claim` out.
    fn lets_in(&self, claim: &Claim) -> bool {
        match claim.mode {
            Mode::Permit(_) => self.permit_for(claim).is_some(),
            mode => self.has_room(mode),
        }
    }

    /// Whether no lease keeps everybody out who wants it in this mode.
    fn has_room(&self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => self.is_free(),
            Mode::Shared => self.is_free() || self.is_shared(),
            Mode::Permit(permits) => !self.free_permits(permits).is_empty(),
        }
    }

    /// Whether a lock that nobody holds goes to `ticket` now.
    fn falls_to(&mut self, claim: &Claim, ticket: Ticket, step: &mut Step<'_>) -> bool {
        if self.queue.is_reserved() {
            return self.queue.yields_to(ticket);
        }
        if self.queue.has_gap() {
            return false;
        }
        if !self.queue.has_older(ticket) {
            return true;
        }
        self.queue.enqueue(ticket, Entry::of(claim), step.now);
        self.queue.hand_over(Some(ticket), step)
    }

    /// Grants to one who may have waited; the first reader calls those behind it, and the first who
    /// has a permit has the others offered.
    pub(super) fn admit(
        &mut self,
        claim: &Claim,
        waiter: Option<Owner>,
        step: &mut Step<'_>,
    ) -> Result<Attempt, Error> {
        let is_first = self.is_free();
        let granted = self.grant(claim, step.now)?;
        self.queue.make_way(waiter, step.now);
        match claim.mode {
            Mode::Shared if is_first => self.queue.call_readers(None, step),
            Mode::Permit(_) if is_first => self.offer_permits(step),
            Mode::Exclusive => self.queue.ask_anew(),
            _ => {}
        }
        Ok(granted)
    }

    fn grant(&mut self, claim: &Claim, now: BootInstant) -> Result<Attempt, Error> {
        let fence = self.next_fence(claim)?;
        self.hold(claim, fence, now);
        Ok(Attempt::Granted(Grant::new(fence)))
    }

    fn hold(&mut self, claim: &Claim, fence: Fence, now: BootInstant) {
        let (mut claim, ttl) = (claim.clone(), claim.ttl);
        claim.slot = self.permit_for(&claim);
        self.leases.push(Lease {
            claim,
            fence,
            end: now + ttl,
            broken: false,
        });
    }

    /// The answer to one that is in the queue. Where it could join those who hold the lock, only those
    /// before it keep it out: of these none for longer than until it is late.
    pub(super) fn refuse(
        &self,
        claim: &Claim,
        ticket: Ticket,
        its_turn: bool,
        now: BootInstant,
    ) -> Attempt {
        let mut busy = self.refusal(claim, its_turn, now);
        busy.place = self.queue.place(ticket.waiter);
        let may_join = !its_turn && !self.is_free() && self.has_room(claim.mode);
        if let Some(left) = self.queue.awaited(ticket, now).filter(|_| may_join) {
            busy.holder = None;
            busy.remaining = busy.remaining.map(|remaining| remaining.min(left));
        }
        Attempt::Busy(busy)
    }

    /// What `claim` is told, and which permits it could have where it is its turn.
    pub(super) fn refusal(&self, claim: &Claim, its_turn: bool, now: BootInstant) -> Busy {
        let in_the_way = match (claim.mode, self.permits()) {
            (Mode::Permit(_), Some(_)) => self.first_lease(),
            _ => self.last_lease(),
        };
        let mut busy = Busy::by(in_the_way.map(|lease| lease.claim.owner));
        let rest = in_the_way.map(|lease| lease.end.since(now));
        busy.remaining = rest.or(self.queue.rest(now));
        if let Some(permits) = claim.mode.permits().filter(|_| its_turn) {
            busy.free = self.free_permits(permits);
        }
        busy
    }

    /// How long the lock is held at most.
    pub(super) fn rest(&self, now: BootInstant) -> Option<Duration> {
        self.last_lease().map(|lease| lease.end.since(now))
    }

    /// The lease that ends first.
    pub(super) fn first_lease(&self) -> Option<&Lease> {
        self.leases.iter().min_by_key(|lease| lease.end)
    }

    /// The lease that ends last.
    fn last_lease(&self) -> Option<&Lease> {
        self.leases.iter().max_by_key(|lease| lease.end)
    }

    fn next_fence(&mut self, claim: &Claim) -> Result<Fence, Error> {
        let next = self
            .counter
            .max(claim.proposal.as_micros())
            .saturating_add(1);
        let fence = Fence::new(next)
            .filter(|fence| *fence <= Fence::MAX)
            .ok_or_else(|| {
                let text = format!("fence {next} is out of bounds: at most {}", Fence::MAX);
                Error::new(ErrorKind::Corrupt, text).with_key(&claim.key)
            })?;
        self.counter = next;
        Ok(fence)
    }
}

impl Lease {
    pub(super) fn holder(&self, now: BootInstant) -> Holder {
        let mut holder = Holder::of(self.claim.owner, self.claim.mode);
        holder.client = Some((*self.claim.client).clone());
        holder.fence = Some(self.fence);
        holder.remaining = Some(self.end.since(now));
        holder.broken = self.broken;
        holder
    }
}
