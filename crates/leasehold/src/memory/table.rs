//! The locks of a memory store, and the queue of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::breaks::Breaks;
use super::entries::{Entry, Lease};
use crate::env::clock::BootInstant;
use crate::store::{
    AcquireError, Busy, Claim, ForceReleaseRecord, ForcedRelease, Grant, Held, LostReason, Release,
    Renewal, Term,
};
use crate::types::{
    Error, ErrorKind, Fence, Holder, Key, Mode, Owner, PermitSlots, Permits, Waiter,
};

#[derive(Debug, Default)]
pub(super) struct Table {
    locks: BTreeMap<Key, Lock>,
}

/// The state of one key.
#[derive(Debug, Default)]
pub(super) struct Lock {
    /// The greatest fence ever granted. It outlives every lease.
    counter: u64,
    leases: Vec<Lease>,
    /// The waiters, the oldest first.
    queue: Vec<Entry>,
    breaks: Breaks,
}

/// A waiter loses its place if it does not ask within this time after it was notified.
const NOTIFIED_MAX: Duration = Duration::from_secs(1);

impl Table {
    pub(super) fn acquire(
        &mut self,
        claim: &Arc<Claim>,
        now: BootInstant,
    ) -> Result<Grant, AcquireError> {
        self.change(&claim.key, now, |lock| lock.acquire(claim, now))
    }

    pub(super) fn renew(&mut self, held: &Held, now: BootInstant) -> Renewal {
        self.change(&held.claim.key, now, |lock| lock.renew(held, now))
    }

    pub(super) fn release(&mut self, claim: &Claim, now: BootInstant) -> Release {
        self.change(&claim.key, now, |lock| lock.release(claim))
    }

    /// Returns the waiter's notification, and when the lock may become free without one.
    pub(super) fn outlook(
        &mut self,
        claim: &Claim,
        now: BootInstant,
    ) -> Option<(Arc<Notify>, Option<BootInstant>)> {
        let lock = self.locks.get_mut(&claim.key)?;
        lock.refresh(now);
        let entry = lock.queue.iter().find(|it| it.claim.owner == claim.owner)?;
        let ends = lock.leases.iter().map(|lease| lease.end);
        let notified_at = lock.queue.iter().filter_map(|it| it.notified_at);
        let until = ends.chain(notified_at.map(|at| at + NOTIFIED_MAX)).min();
        Some((Arc::clone(&entry.notify), until))
    }

    pub(super) fn break_lease(
        &mut self,
        key: &Key,
        record: &ForceReleaseRecord,
        now: BootInstant,
    ) -> ForcedRelease {
        self.change(key, now, |lock| lock.break_lease(record, now))
    }

    pub(super) fn last_break(&mut self, key: &Key, now: BootInstant) -> Option<ForceReleaseRecord> {
        self.locks.get(key)?.breaks.last(now)
    }

    pub(super) fn holders(&self, key: &Key, now: BootInstant) -> Vec<Holder> {
        let lock = self.locks.get(key);
        lock.map_or_else(Vec::new, |lock| lock.holders(now))
    }

    pub(super) fn waiters(&mut self, key: &Key, now: BootInstant) -> Vec<Waiter> {
        let Some(lock) = self.locks.get_mut(key) else {
            return Vec::new();
        };
        lock.refresh(now);
        lock.queue.iter().map(Entry::waiter).collect()
    }

    /// Returns the held locks, by name, with their holders.
    pub(super) fn held(&self, now: BootInstant) -> impl Iterator<Item = (&Key, Vec<Holder>)> {
        let locks = self.locks.iter();
        locks
            .map(move |(key, lock)| (key, lock.holders(now)))
            .filter(|(_, holders)| !holders.is_empty())
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.locks.remove(key);
    }

    /// Applies `step` to the lock of `key`. Before and after, it drops what has expired and calls the
    /// waiters whose turn it is.
    fn change<T>(&mut self, key: &Key, now: BootInstant, step: impl FnOnce(&mut Lock) -> T) -> T {
        let lock = self.locks.entry(key.clone()).or_default();
        lock.refresh(now);
        let answer = step(lock);
        lock.refresh(now);
        answer
    }
}

impl Lock {
    fn refresh(&mut self, now: BootInstant) {
        self.leases.retain(|lease| now < lease.end);
        self.queue
            .retain(|entry| entry.notified_at.is_none_or(|at| now < at + NOTIFIED_MAX));
        for place in 0..self.queue.len() {
            let may_ask = self.may_ask(place);
            let entry = &mut self.queue[place];
            if !may_ask {
                entry.notified_at = None;
            } else if entry.notified_at.is_none() {
                entry.notified_at = Some(now);
                entry.notify.notify_one();
            }
        }
    }

    /// Returns whether the waiter at `place` gets an answer other than busy if it asks now.
    fn may_ask(&self, place: usize) -> bool {
        let claim = &self.queue[place].claim;
        self.differs(claim.mode) || (self.lets_in(claim) && self.is_turn(claim, place))
    }

    fn acquire(&mut self, claim: &Arc<Claim>, now: BootInstant) -> Result<Grant, AcquireError> {
        if let Err(error) = self.check_permits(claim) {
            self.dequeue(claim.owner);
            return Err(error.into());
        }
        let place = self.place(claim, now);
        if !self.lets_in(claim) || !self.is_turn(claim, place) {
            return Err(AcquireError::Busy(self.busy(claim, place, now)));
        }
        self.dequeue(claim.owner);
        let fence = self.next_fence(claim)?;
        self.leases.push(Lease {
            claim: Arc::clone(claim),
            fence,
            slot: claim
                .mode
                .permits()
                .and_then(|_| self.free_permits(claim.mode).iter().next()),
            end: now + claim.ttl,
            broken: false,
        });
        Ok(Grant::new(fence, Term::new(now, claim.ttl)))
    }

    /// Returns how many waiters are ahead of `claim`, after adding it to the queue if it queues.
    fn place(&mut self, claim: &Arc<Claim>, now: BootInstant) -> usize {
        if claim.barges {
            return 0;
        }
        let is_free = self.queue.is_empty() && self.lets_in(claim);
        if !claim.waits || is_free {
            return self.queue.len();
        }
        let mut entries = self.queue.iter_mut();
        let at = entries.position(|it| it.claim.owner == claim.owner);
        let Some(place) = at else {
            self.queue.push(Entry {
                claim: Arc::clone(claim),
                notify: Arc::default(),
                notified_at: None,
            });
            return self.queue.len() - 1;
        };
        // The waiter came. If others were faster, it is notified again.
        let entry = &mut self.queue[place];
        entry.claim = Arc::clone(claim);
        entry.notified_at = entry.notified_at.map(|_| now);
        place
    }

    /// Renews a lease, or makes it shared. A late message of the exclusive claim finds a shared lease
    /// lost.
    fn renew(&mut self, Held { claim, fence }: &Held, now: BootInstant) -> Renewal {
        if self.breaks.includes(claim.owner) {
            return Renewal::Lost(LostReason::Broken);
        }
        if self.leases.is_empty() {
            return Renewal::Lost(LostReason::Gone);
        }
        let Some(lease) = self.lease_of(claim.owner) else {
            return Renewal::Lost(LostReason::Taken);
        };
        let downgrades = (lease.claim.mode, claim.mode) == (Mode::Exclusive, Mode::Shared);
        if lease.claim.mode != claim.mode && !downgrades {
            return Renewal::Lost(LostReason::Taken);
        }
        if downgrades {
            Arc::make_mut(&mut lease.claim).mode = claim.mode;
        }
        lease.fence = lease.fence.max(*fence);
        lease.end = lease.end.max(now + claim.ttl);
        Renewal::Renewed(Term::new(now, claim.ttl))
    }

    fn release(&mut self, claim: &Claim) -> Release {
        self.dequeue(claim.owner);
        let before = self.leases.len();
        self.leases
            .retain(|lease| lease.claim.owner != claim.owner || lease.broken);
        match self.leases.len() < before {
            true => Release::Released,
            false => Release::WasLost,
        }
    }

    fn break_lease(&mut self, record: &ForceReleaseRecord, now: BootInstant) -> ForcedRelease {
        self.breaks.remember(record.owner);
        let is_meant = |claim: &Claim| claim.owner == record.owner && claim.mode == Mode::Exclusive;
        let Some(at) = self.leases.iter().position(|lease| is_meant(&lease.claim)) else {
            return ForcedRelease::new(false, None);
        };
        self.breaks.keep(record, now);
        if record.at_once {
            self.leases.remove(at);
            return ForcedRelease::new(true, None);
        }
        self.leases[at].broken = true;
        ForcedRelease::new(true, Some(self.leases[at].end.since(now)))
    }

    fn dequeue(&mut self, owner: Owner) {
        self.queue.retain(|entry| entry.claim.owner != owner);
    }

    fn lease_of(&mut self, owner: Owner) -> Option<&mut Lease> {
        let mut leases = self.leases.iter_mut();
        leases.find(|lease| lease.claim.owner == owner && !lease.broken)
    }

    /// Returns whether no lease keeps `claim` out.
    fn lets_in(&self, claim: &Claim) -> bool {
        let mut leases = self.leases.iter();
        match claim.mode {
            Mode::Exclusive => self.leases.is_empty(),
            Mode::Shared => leases.all(|lease| lease.claim.mode == Mode::Shared),
            Mode::Permit(_) => !self.free_permits(claim.mode).is_empty(),
        }
    }

    /// Returns whether none of the `place` waiters ahead of `claim` keeps it out.
    fn is_turn(&self, claim: &Claim, place: usize) -> bool {
        let older = self.queue[..place].iter().map(|entry| entry.claim.mode);
        // Waiters for another number of permits are about to be refused.
        let mut older = older.filter(|mode| !self.differs(*mode));
        match claim.mode {
            Mode::Exclusive => older.next().is_none(),
            Mode::Shared => older.all(|mode| mode == Mode::Shared),
            Mode::Permit(_) => {
                let free = self.free_permits(claim.mode).len() as usize;
                older.clone().all(|mode| mode == claim.mode) && older.count() < free
            }
        }
    }

    /// Returns whether permits are held in a different number than `mode` has.
    fn differs(&self, mode: Mode) -> bool {
        matches!((self.permits(), mode.permits()), (Some(held), Some(wanted)) if held != wanted)
    }

    fn check_permits(&self, claim: &Claim) -> Result<(), Error> {
        match (self.permits(), claim.mode.permits()) {
            (Some(there), Some(wanted)) if there != wanted => {
                let text = format!("the lock is in use with {there} permits, not {wanted}");
                Err(Error::new(ErrorKind::PermitsDiffer, text).with_key(&claim.key))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of permits of the lock, while one is held.
    fn permits(&self) -> Option<Permits> {
        self.leases.first()?.claim.mode.permits()
    }

    /// Returns the permits of `mode` that are free.
    fn free_permits(&self, mode: Mode) -> PermitSlots {
        let none_but_permits = self.leases.is_empty() || self.permits() == mode.permits();
        let all = mode.permits().filter(|_| none_but_permits);
        let mut free: PermitSlots = all.into_iter().flat_map(Permits::slots).collect();
        let held = self.leases.iter().filter_map(|lease| lease.slot);
        held.for_each(|slot| free.remove(slot));
        free
    }

    fn busy(&self, claim: &Claim, place: usize, now: BootInstant) -> Busy {
        let lease = match claim.mode {
            Mode::Permit(_) => self.leases.iter().min_by_key(|lease| lease.end),
            _ => self.leases.iter().max_by_key(|lease| lease.end),
        };
        let mut busy = Busy::by(lease.map(|lease| lease.claim.owner));
        busy.remaining = lease.map(|lease| lease.end.since(now));
        busy.place = claim.is_queued().then_some(place as u64 + 1);
        busy
    }

    fn next_fence(&mut self, claim: &Claim) -> Result<Fence, Error> {
        let next = self.counter.max(claim.proposal.as_micros());
        let next = next.saturating_add(1);
        let fence = Fence::new(next).filter(|fence| *fence <= Fence::MAX);
        let fence = fence.ok_or_else(|| {
            let text = format!("fence {next} is out of bounds: at most {}", Fence::MAX);
            Error::new(ErrorKind::Corrupt, text).with_key(&claim.key)
        })?;
        self.counter = next;
        Ok(fence)
    }

    fn holders(&self, now: BootInstant) -> Vec<Holder> {
        let leases = self.leases.iter().filter(|lease| now < lease.end);
        leases.map(|lease| lease.holder(now)).collect()
    }
}
