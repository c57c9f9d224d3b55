use std::sync::Arc;

use tokio::sync::Notify;

use crate::env::clock::BootInstant;
use crate::store::LockRequest;
use crate::types::{Fence, Holder, PermitSlot, Ticket, Waiter};

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) request: Arc<LockRequest>,
    pub(super) fence: Fence,
    /// The permit, in [`Mode::Permit`](crate::Mode::Permit).
    pub(super) slot: Option<PermitSlot>,
    pub(super) end: BootInstant,
    /// Whether it only keeps others out.
    pub(super) broken: bool,
}

/// A waiter.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) request: Arc<LockRequest>,
    pub(super) notify: Arc<Notify>,
    /// When the waiter was notified, if the lock is free for it. A waiter that does not come is dropped.
    pub(super) notified_at: Option<BootInstant>,
}

impl Lease {
    pub(super) fn holder(&self, now: BootInstant) -> Holder {
        let mut holder = Holder::of(self.request.owner, self.request.mode);
        holder.client = Some((*self.request.client).clone());
        holder.fence = Some(self.fence);
        holder.remaining = Some(self.end.since(now));
        holder.broken = self.broken;
        holder
    }
}

impl Entry {
    pub(super) fn waiter(&self) -> Waiter {
        let waiter = self.request.owner;
        let since = waiter.since();
        let mut shown = Waiter::unknown(Ticket { since, waiter }, self.request.mode);
        shown.client = Some((*self.request.client).clone());
        shown
    }
}
