//! The locks of a memory store, and the queue of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::breaks::Breaks;
use super::entries::{Entry, Lease};
use crate::env::clock::BootInstant;
use crate::store::{AcquireError, Busy, Grant, Held, LockRequest, ReleaseReply, RenewReply, Term};
use crate::types::{
    BreakRecord, BrokenLease, Error, Fence, Holder, Key, LostReason, Mode, Owner, PermitSlots,
    Permits, Waiter,
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

/// A waiter loses its position if it does not ask within this time after it was notified.
const NOTIFIED_MAX: Duration = Duration::from_secs(1);

impl Table {
    pub(super) fn acquire(
        &mut self,
        request: &Arc<LockRequest>,
        now: BootInstant,
    ) -> Result<Grant, AcquireError> {
        self.change(&request.key, now, |lock| lock.acquire(request, now))
    }

    pub(super) fn renew(&mut self, held: &Held, now: BootInstant) -> RenewReply {
        self.change(&held.request.key, now, |lock| lock.renew(held, now))
    }

    pub(super) fn release(&mut self, request: &LockRequest, now: BootInstant) -> ReleaseReply {
        self.change(&request.key, now, |lock| lock.release(request))
    }

    /// Returns the waiter's notification, and when the lock may become free without one.
    pub(super) fn outlook(
        &mut self,
        request: &LockRequest,
        now: BootInstant,
    ) -> Option<(Arc<Notify>, Option<BootInstant>)> {
        let lock = self.locks.get_mut(&request.key)?;
        lock.refresh(now);
        let entry = lock
            .queue
            .iter()
            .find(|it| it.request.owner == request.owner)?;
        let ends = lock.leases.iter().map(|lease| lease.end);
        let notified_at = lock.queue.iter().filter_map(|it| it.notified_at);
        let until = ends.chain(notified_at.map(|at| at + NOTIFIED_MAX)).min();
        Some((Arc::clone(&entry.notify), until))
    }

    pub(super) fn break_lease(
        &mut self,
        key: &Key,
        record: &BreakRecord,
        now: BootInstant,
    ) -> BrokenLease {
        self.change(key, now, |lock| lock.break_lease(record, now))
    }

    pub(super) fn last_break(&mut self, key: &Key, now: BootInstant) -> Option<BreakRecord> {
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
        for position in 0..self.queue.len() {
            let may_ask = self.may_ask(position);
            let entry = &mut self.queue[position];
            if !may_ask {
                entry.notified_at = None;
            } else if entry.notified_at.is_none() {
                entry.notified_at = Some(now);
                entry.notify.notify_one();
            }
        }
    }

    /// Returns whether the waiter at `position` gets an answer other than busy if it asks now.
    fn may_ask(&self, position: usize) -> bool {
        let request = &self.queue[position].request;
        self.differs(request.mode) || (self.lets_in(request) && self.is_turn(request, position))
    }

    fn acquire(
        &mut self,
        request: &Arc<LockRequest>,
        now: BootInstant,
    ) -> Result<Grant, AcquireError> {
        if let Err(error) = self.check_permits(request) {
            self.dequeue(request.owner);
            return Err(error.into());
        }
        let position = self.position(request, now);
        if !self.lets_in(request) || !self.is_turn(request, position) {
            return Err(AcquireError::Busy(self.busy(request, position, now)));
        }
        self.dequeue(request.owner);
        let fence = self.next_fence(request)?;
        self.leases.push(Lease {
            request: Arc::clone(request),
            fence,
            slot: request
                .mode
                .permits()
                .and_then(|_| self.free_permits(request.mode).iter().next()),
            end: now + request.ttl,
            broken: false,
        });
        Ok(Grant::new(fence, Term::new(now, request.ttl)))
    }

    /// Returns how many waiters are ahead of `request`, after adding it to the queue if it queues.
    fn position(&mut self, request: &Arc<LockRequest>, now: BootInstant) -> usize {
        if request.barges {
            return 0;
        }
        let is_free = self.queue.is_empty() && self.lets_in(request);
        if !request.waits || is_free {
            return self.queue.len();
        }
        let mut entries = self.queue.iter_mut();
        let at = entries.position(|it| it.request.owner == request.owner);
        let Some(position) = at else {
            self.queue.push(Entry {
                request: Arc::clone(request),
                notify: Arc::default(),
                notified_at: None,
            });
            return self.queue.len() - 1;
        };
        // The waiter came. If others were faster, it is notified again.
        let entry = &mut self.queue[position];
        entry.request = Arc::clone(request);
        entry.notified_at = entry.notified_at.map(|_| now);
        position
    }

    /// Renews a lease, or makes it shared. A late message of the exclusive request finds a shared lease
    /// lost.
    fn renew(&mut self, Held { request, fence }: &Held, now: BootInstant) -> RenewReply {
        if self.breaks.includes(request.owner) {
            return RenewReply::Lost(LostReason::Broken);
        }
        if self.leases.is_empty() {
            return RenewReply::Lost(LostReason::Gone);
        }
        let Some(lease) = self.lease_of(request.owner) else {
            return RenewReply::Lost(LostReason::Taken);
        };
        let downgrades = (lease.request.mode, request.mode) == (Mode::Exclusive, Mode::Shared);
        if lease.request.mode != request.mode && !downgrades {
            return RenewReply::Lost(LostReason::Taken);
        }
        if downgrades {
            Arc::make_mut(&mut lease.request).mode = request.mode;
        }
        lease.fence = lease.fence.max(*fence);
        lease.end = lease.end.max(now + request.ttl);
        RenewReply::Renewed(Term::new(now, request.ttl))
    }

    fn release(&mut self, request: &LockRequest) -> ReleaseReply {
        self.dequeue(request.owner);
        let was_held = self.lease_of(request.owner).is_some();
        // The owner of a broken lease says that it has ended.
        self.leases
            .retain(|lease| lease.request.owner != request.owner);
        match was_held {
            true => ReleaseReply::Released,
            false => ReleaseReply::WasLost,
        }
    }

    fn break_lease(&mut self, record: &BreakRecord, now: BootInstant) -> BrokenLease {
        self.breaks.remember(record.owner);
        let mut leases = self.leases.iter();
        let Some(at) = leases.position(|lease| lease.request.owner == record.owner) else {
            return BrokenLease::new(false, None);
        };
        self.breaks.keep(record, now);
        if record.at_once {
            self.leases.remove(at);
            return BrokenLease::new(true, None);
        }
        self.leases[at].broken = true;
        BrokenLease::new(true, Some(self.leases[at].end.since(now)))
    }

    fn dequeue(&mut self, owner: Owner) {
        self.queue.retain(|entry| entry.request.owner != owner);
    }

    fn lease_of(&mut self, owner: Owner) -> Option<&mut Lease> {
        let mut leases = self.leases.iter_mut();
        leases.find(|lease| lease.request.owner == owner && !lease.broken)
    }

    /// Returns whether no lease keeps `request` out.
    fn lets_in(&self, request: &LockRequest) -> bool {
        let mut leases = self.leases.iter();
        match request.mode {
            Mode::Exclusive => self.leases.is_empty(),
            Mode::Shared => leases.all(|lease| lease.request.mode == Mode::Shared),
            Mode::Permit(_) => !self.free_permits(request.mode).is_empty(),
        }
    }

    /// Returns whether none of the `position` waiters ahead of `request` keeps it out.
    fn is_turn(&self, request: &LockRequest, position: usize) -> bool {
        let older = self.queue[..position]
            .iter()
            .map(|entry| entry.request.mode);
        // Waiters for another number of permits are about to be refused.
        let mut older = older.filter(|mode| !self.differs(*mode));
        match request.mode {
            Mode::Exclusive => older.next().is_none(),
            Mode::Shared => older.all(|mode| mode == Mode::Shared),
            Mode::Permit(_) => {
                let free = self.free_permits(request.mode).len() as usize;
                older.clone().all(|mode| mode == request.mode) && older.count() < free
            }
        }
    }

    /// Returns whether permits are held in a different number than `mode` has.
    fn differs(&self, mode: Mode) -> bool {
        matches!((self.permits(), mode.permits()), (Some(held), Some(wanted)) if held != wanted)
    }

    fn check_permits(&self, request: &LockRequest) -> Result<(), Error> {
        match (self.permits(), request.mode.permits()) {
            (Some(there), Some(wanted)) if there != wanted => {
                Err(Error::permits_differ(there, wanted).with_key(&request.key))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of permits of the lock, while one is held.
    fn permits(&self) -> Option<Permits> {
        self.leases.first()?.request.mode.permits()
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

    fn busy(&self, request: &LockRequest, position: usize, now: BootInstant) -> Busy {
        let lease = match request.mode {
            Mode::Permit(_) => self.leases.iter().min_by_key(|lease| lease.end),
            _ => self.leases.iter().max_by_key(|lease| lease.end),
        };
        let mut busy = Busy::by(lease.map(|lease| lease.request.owner));
        busy.remaining = lease.map(|lease| lease.end.since(now));
        busy.position = request.is_queued().then_some(position as u64 + 1);
        busy
    }

    fn next_fence(&mut self, request: &LockRequest) -> Result<Fence, Error> {
        let fence = Fence::after(Fence::new(self.counter), request.proposal);
        let fence = fence.map_err(|error| error.with_key(&request.key))?;
        self.counter = fence.get();
        Ok(fence)
    }

    fn holders(&self, now: BootInstant) -> Vec<Holder> {
        let leases = self.leases.iter().filter(|lease| now < lease.end);
        leases.map(|lease| lease.holder(now)).collect()
    }
}
