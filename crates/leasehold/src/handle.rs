use std::fmt;
use std::time::Duration;

use crate::claim::Mode;
use crate::clock::{BootId, BootInstant, SystemClock};
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::key::Key;
use crate::lease::{Lease, LeaseTimes};
use crate::owner::Owner;
use crate::store::Store;
use crate::tenure::Tenure;

/// A lock that is held while no process keeps it: what a [`Guard`](crate::Guard) is given up to, and what
/// another process takes back.
///
/// Nobody renews the lease. It stands until its TTL is over, and the handle is good until its
/// [`deadline`](Self::deadline), as the guard was: counted from before the request that earned it was sent,
/// on the machine's own clock. Before that, [`Client::renew`](crate::Client::renew) makes a *new* handle of
/// it with a later deadline, [`Client::adopt`](crate::Client::adopt) makes it a guard that is kept, and
/// [`Client::release`](crate::Client::release) frees the lock.
///
/// Once the deadline has passed the handle is lost, for ever, even where the lease still stands. So is one on
/// another machine, or after a restart of this one: nobody can measure its deadline there. Either can still
/// be released.
///
/// Copies of a handle are one holder: all who renew or adopt one hold the lock together, with one fence.
///
/// A handle is a secret: whoever has it can free the lock. [`reveal`](Self::reveal) gives its text;
/// `Debug` and errors never show it.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, Handle, MemoryStore};
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
pub struct Handle {
    pub(crate) key: Key,
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
    pub(crate) fence: Fence,
    /// How long the lease lives from its next renewal on, the delay not counted.
    pub(crate) ttl: Duration,
    pub(crate) delay: Duration,
    /// As other processes of the machine read it.
    pub(crate) deadline: BootInstant,
    /// The end of the whole hold, however often it is renewed.
    pub(crate) hold_deadline: Option<BootInstant>,
    pub(crate) boot: BootId,
    /// The places of the store that granted the lease; none in a handle that was written without them.
    pub(crate) places: Vec<String>,
}

impl Handle {
    /// The handle of a lease as it stands; `None` where it has no deadline.
    pub(crate) fn of(tenure: &Tenure, boot: BootId, store: &dyn Store) -> Option<Self> {
        let claim = tenure.claim();
        Some(Self {
            key: claim.key.clone(),
            owner: claim.owner,
            mode: claim.mode,
            fence: tenure.fence,
            ttl: claim.term(),
            delay: claim.delay,
            deadline: SystemClock::as_other_processes_read(tenure.deadline()?),
            hold_deadline: tenure
                .hold_deadline()
                .map(SystemClock::as_other_processes_read),
            boot,
            places: store.places(),
        })
    }

    /// The lock's name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// How the lock is held.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The fencing token of the grant. It stays the same, however often the lease is renewed.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// For how long the lease lives from its next renewal on.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The same handle, whose lease lives for `ttl` from its next renewal on: at most the longest TTL of
    /// the store. A lease that stands for longer already is not shortened by that; only its deadline is.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The instant from which on the handle is lost unless it is renewed before, by the clock of
    /// [`Client::ambient`](crate::Client::ambient), as a process reads it that was told of no
    /// [standstill](crate::clock::Clock::stood_still); one that was counts it as sooner. `None` on another
    /// machine than the one it was made on, and after a restart.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.is_of_this_boot().then_some(self.deadline)
    }

    pub(crate) fn is_of_this_boot(&self) -> bool {
        BootId::of_this_process().is_ok_and(|boot| boot == self.boot)
    }

    /// The lease as the handle knows it, with `margin` before the end of each one to come.
    pub(crate) fn lease(&self, margin: Duration) -> Lease {
        let times = LeaseTimes {
            ttl: self.ttl,
            margin: Some(margin),
            max_hold: None,
        };
        Lease::resumed(times, self.deadline, self.hold_deadline)
    }

    /// The error for a lease that `store` does not know, if another store granted it. A store may have
    /// several addresses, so that this alone never refuses a handle.
    pub(crate) fn misdirected(&self, store: &dyn Store) -> Option<Error> {
        let here = store.places();
        if self.places.is_empty() || self.places.iter().any(|place| here.contains(place)) {
            return None;
        }
        let text = format!(
            "the handle is of a lock on {}, and does not hold one on {}: name the store of the handle",
            self.places.join(", "),
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
