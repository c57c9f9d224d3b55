//! Handles: a lease without a process that renews it, its text, and the ways in and out.

mod adopt;
pub(crate) mod text;

pub(crate) use adopt::{confirmed, leases_stand, renew, take_up};

use std::fmt;
use std::time::Duration;

use crate::env::clock::{BootId, BootInstant, SystemClock};
use crate::lease::{HeldLease, Lease, LeaseTimes};
use crate::store::Store;
use crate::types::{Error, ErrorKind, Fence, Key, Mode, Owner};

/// A lock that stays held after its process has detached it.
/// [`Guard::into_handle`](crate::Guard::into_handle) returns a handle, and another process can adopt it.
///
/// The lease of a handle is not renewed in the background. It lasts until its TTL is over. The handle is
/// valid until its [`deadline`](Self::deadline), as the guard was: it counts from before the request that
/// granted or renewed the lease was sent, on the machine's own clock. Before the deadline,
/// [`Client::renew`](crate::Client::renew) returns a *new* handle with a later deadline,
/// [`Client::adopt`](crate::Client::adopt) turns it into a guard that is renewed, and
/// [`Client::release`](crate::Client::release) releases the lock.
///
/// Once the deadline has passed the handle is lost and stays lost, even if the lease has not ended. So is a
/// handle on another machine, or after a restart of this one, since its deadline cannot be measured there.
/// Both can still be released. A [portable](Self::portable) handle is the exception.
///
/// Copies of a handle are one holder: all processes that renew or adopt one hold the lock together, with
/// one fence.
///
/// Treat a handle as a secret: it is enough to release the lock. [`reveal`](Self::reveal) returns its text;
/// `Debug` and errors never show it.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, handle::Handle, memory::MemoryStore};
///
/// let store = MemoryStore::new();
/// let guard = Client::new(store.clone()).lock("deploy").acquire().await?;
/// let text = guard.into_handle()?.reveal(); // to be written down, for the next process
///
/// let locks = Client::new(store);
/// let handle: Handle = text.parse()?;
/// let handle = locks.renew(&handle).await?;
/// assert!(locks.lock("deploy").try_acquire().await?.is_none());
/// locks.release(&handle).await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "without its handle, nobody can release the lock before its TTL ends"]
pub struct Handle {
    pub(crate) key: Key,
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
    pub(crate) fence: Fence,
    /// How long the lease lives from its next renewal on, not counting the delay.
    pub(crate) ttl: Duration,
    pub(crate) delay: Duration,
    /// As other processes of the machine read it.
    pub(crate) deadline: BootInstant,
    /// The end of the whole hold, however often it is renewed.
    pub(crate) hold_deadline: Option<BootInstant>,
    pub(crate) boot: BootId,
    /// The locations of the store that granted the lease; empty in a handle that was written without them.
    pub(crate) locations: Vec<String>,
}

impl Handle {
    /// Returns the handle of a lease in its current state; `None` if it has no deadline.
    pub(crate) fn of(held_lease: &HeldLease, boot: BootId, store: &dyn Store) -> Option<Self> {
        let request = held_lease.request();
        Some(Self {
            key: request.key.clone(),
            owner: request.owner,
            mode: request.mode,
            fence: held_lease.fence,
            ttl: request.usable_ttl(),
            delay: request.delay,
            deadline: SystemClock::as_other_processes_read(held_lease.deadline()?),
            hold_deadline: held_lease
                .hold_deadline()
                .map(SystemClock::as_other_processes_read),
            boot,
            locations: store.locations(),
        })
    }

    /// Returns the lock's name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the mode in which the lock is held.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the fencing token of the grant. It stays the same, however often the lease is renewed.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Returns how long the lease lives from its next renewal on.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the same handle, whose lease lives for `ttl` from its next renewal on: at most the longest
    /// TTL of the store. This does not shorten a lease that already lasts longer; it only shortens the
    /// deadline.
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Returns a handle that other machines can renew, too, and this one after a restart. It has no deadline: the store alone
    /// says whether the lease still lasts, and a renewal succeeds as long as it does. So a process must renew or adopt the
    /// handle before it works under the lock. [`deadline`](Self::deadline) returns `None`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the guard had a maximum hold time, which no other machine can measure.
    pub fn portable(mut self) -> Result<Self, Error> {
        if self.hold_deadline.is_some() {
            let text = "a handle with a maximum hold time is for one machine alone";
            return Err(Error::new(ErrorKind::InvalidInput, text).with_key(&self.key));
        }
        self.boot = BootId::ANY;
        Ok(self)
    }

    /// Returns whether other machines can renew the handle.
    pub fn is_portable(&self) -> bool {
        self.boot == BootId::ANY
    }

    /// Returns the instant at which the handle is lost unless it is renewed before, by the clock of
    /// [`Client::env`](crate::Client::env). The instant is for a process whose clock has not
    /// recorded a [pause](crate::clock::Clock::was_paused); after a pause the process treats the
    /// handle as lost sooner. `None` on any other machine, after a restart, and for a [portable](Self::portable) handle.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.is_of_this_boot().then_some(self.deadline)
    }

    pub(crate) fn is_of_this_boot(&self) -> bool {
        BootId::of_this_process().is_ok_and(|boot| boot == self.boot)
    }

    /// Returns the lease that the handle describes at `now`. That of a portable handle is as long as the store may take to
    /// confirm it.
    pub(crate) fn lease(&self, now: BootInstant) -> Lease {
        let deadline = match self.is_portable() {
            true => now + self.ttl,
            false => self.deadline,
        };
        let times = LeaseTimes {
            ttl: self.ttl,
            delay: self.delay,
            max_hold: None,
        };
        Lease::resumed(times, deadline, self.hold_deadline)
    }

    /// Returns the error for a lease that `store` does not know, if another store granted it. A store may
    /// have several addresses, so this alone never rejects a handle.
    pub(crate) fn misdirected(&self, store: &dyn Store) -> Option<Error> {
        let here = store.locations();
        if self.locations.is_empty()
            || self
                .locations
                .iter()
                .any(|location| here.contains(location))
        {
            return None;
        }
        let text = format!(
            "the handle is of a lock on {}, and does not hold one on {}: name the store of the handle",
            self.locations.join(", "),
            here.join(", ")
        );
        Some(Error::new(ErrorKind::InvalidInput, text).with_key(&self.key))
    }

    pub(crate) fn lost(&self, why: &str) -> Error {
        Error::new(ErrorKind::Lost, format!("lost: {why}")).with_key(&self.key)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("key", &self.key)
            .field("mode", &self.mode)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
