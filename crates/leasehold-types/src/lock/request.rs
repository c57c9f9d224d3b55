use std::sync::Arc;
use std::time::Duration;

use crate::instants::WallTime;
use crate::{ClientInfo, Fence, Key, Mode, Owner, PermitSlot};

/// What one attempt asks of a store: this key, for this owner, in this mode, for this long.
///
/// The same request names the lease afterwards, when it is renewed or released.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockRequest {
    /// The lock.
    pub key: Key,
    /// The identity of this round of a wait, and of the lease.
    pub owner: Owner,
    /// Whether the request excludes all others or shares the lock.
    pub mode: Mode,
    /// The permit that the lease holds, in [`Mode::Permit`], if the store reports it. An attempt takes
    /// any permit.
    pub slot: Option<PermitSlot>,
    /// How long the lease lives at the store unless renewed. Ignored where leases never end.
    pub ttl: Duration,
    /// The last part of `ttl`, which guards do not use. The lock stays unavailable for this long after an
    /// unclean end. A store need not treat it specially: it uses `ttl` for the life of a lease, and
    /// [`LockRequest::usable_ttl`] for the time limits of requests.
    pub delay: Duration,
    /// The client's wall clock when the attempt began, or when a wait tried again. A store grants a fence greater than this and
    /// greater than every fence it granted before, which preserves the order of fences even after the
    /// loss of a counter.
    pub proposal: WallTime,
    /// The client that asks, shown to people who inspect the lock.
    pub client: Arc<ClientInfo>,
    /// Whether the request waits for the lock. The owner is then the waiter in the queue, unless the request barges.
    pub waits: bool,
    /// Whether the request goes ahead of the queue: it takes a free lock even if the lock is reserved for a waiter, and
    /// has no place itself.
    pub barges: bool,
    /// Whether a renewal may restore the lease on members that forgot it while a majority has it. False
    /// if another process could free the lease meanwhile, because the restored lease would come after the
    /// release.
    pub repairs: bool,
    /// The owner of the first round.
    first_owner: Owner,
}

impl LockRequest {
    /// The longest time that a request may take that is about no lease, such as a look or a connection, and a call that
    /// does not wait for the lock.
    pub const LIMIT_MAX: Duration = Duration::from_secs(2);

    /// The longest time that a request about a lease may take, however long its TTL is. A server that answers within
    /// seconds is slow, not silent.
    pub const ANSWER_MAX: Duration = Duration::from_secs(10);

    /// Returns an exclusive request of `client` on `key` for `ttl`.
    pub fn new(
        key: Key,
        owner: Owner,
        ttl: Duration,
        proposal: WallTime,
        client: Arc<ClientInfo>,
    ) -> Self {
        Self {
            key,
            owner,
            mode: Mode::Exclusive,
            slot: None,
            ttl,
            delay: Duration::ZERO,
            proposal,
            client,
            waits: false,
            barges: false,
            repairs: true,
            first_owner: owner,
        }
    }

    /// The same request, which waits for the lock or not.
    #[must_use]
    #[inline]
    pub fn waiting(mut self, waits: bool) -> Self {
        self.waits = waits;
        self
    }

    /// The same request, which goes ahead of the queue or not.
    #[must_use]
    #[inline]
    pub fn barging(mut self, barges: bool) -> Self {
        self.barges = barges;
        self
    }

    /// Returns whether the request waits in the queue.
    #[inline]
    pub fn is_queued(&self) -> bool {
        self.waits && !self.barges
    }

    /// The same request, whose lease lives for another `delay` that guards do not use.
    #[must_use]
    #[inline]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.ttl = self.usable_ttl() + delay;
        self.delay = delay;
        self
    }

    /// Returns the part of the lease's life that guards use: all but the delay.
    #[inline]
    pub fn usable_ttl(&self) -> Duration {
        self.ttl.saturating_sub(self.delay)
    }

    /// Returns how long one request about the lease may take: an attempt, a renewal, or a release. See
    /// [`LockRequest::limit_of`].
    #[inline]
    pub fn limit(&self) -> Duration {
        Self::limit_of(self.usable_ttl())
    }

    /// Returns how long one request about a lease of this [usable TTL](Self::usable_ttl) may take: a third of it, at most
    /// [`LockRequest::ANSWER_MAX`]. The client discards a later grant, because too little of the lease is left.
    #[inline]
    pub fn limit_of(usable_ttl: Duration) -> Duration {
        (usable_ttl / 3).min(Self::ANSWER_MAX)
    }

    /// The same request, tried again at `now`. A counter of fences may have been lost since the wait began.
    #[must_use]
    pub fn proposed_at(mut self, now: WallTime) -> Self {
        self.proposal = self.proposal.max(now);
        self
    }

    /// The same request, in a round of this owner.
    #[must_use]
    pub fn with_owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// Returns the owner that the request was made with. The caller knows the request by it, also in a later round.
    #[must_use]
    pub fn first_owner(&self) -> Owner {
        self.first_owner
    }

    /// The same request for this permit.
    #[must_use]
    pub fn with_slot(mut self, slot: PermitSlot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// The same request, which a renewal does not restore anywhere.
    #[must_use]
    pub fn without_repair(mut self) -> Self {
        self.repairs = false;
        self
    }

    /// The same request in another mode.
    #[must_use]
    #[inline]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }
}

/// A granted request, to be renewed.
#[derive(Clone, Debug)]
pub struct Held {
    /// The request as it was granted.
    pub request: Arc<LockRequest>,
    /// The fence it was granted with.
    pub fence: Fence,
}
