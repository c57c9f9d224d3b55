//! The same locks for programs without async code.
//!
//! Every call blocks its thread until the answer arrives. In async code, use the types at the crate's
//! root instead. All types make the same promises as the types that they wrap.
//!
//! # Examples
//!
//! ```
//! use leasehold::{blocking, memory::MemoryStore};
//!
//! let locks = blocking::Client::new(MemoryStore::new());
//! if let Some(guard) = locks.lock("nightly").try_acquire()? {
//!     println!("rebuild the index with fence {}", guard.fence());
//!     guard.release()?;
//! }
//! # Ok::<(), leasehold::Error>(())
//! ```

/// The options of a wrapped builder, under the same names: those of every lock, and others.
macro_rules! lock_options {
    ($of:literal: key $(, $name:ident($value:ty))*) => {
        /// Returns the name of the lock.
        ///
        /// # Errors
        ///
        /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the name breaks a rule.
        pub fn key(&self) -> Result<&Key, Error> {
            self.0.key()
        }

        lock_options! { $of: $($name($value)),* }
    };
    ($of:literal: $($name:ident($value:ty)),*) => {
        settings! { $of:
            ttl(Duration), lock_delay(Duration), wait(Duration), max_hold(Duration), barging(bool)
            $(, $name($value))*
        }
    };
}

macro_rules! settings {
    ($of:literal: $($name:ident($value:ty)),+) => {$(
        #[doc = concat!("As [`crate::", $of, "::", stringify!($name), "`].")]
        pub fn $name(self, value: $value) -> Self {
            Self(self.0.$name(value))
        }
    )+};
}

/// Methods that block until the async method of the same name returns. An expression after `=` converts what
/// it returns.
macro_rules! calls {
    ($of:literal: $(
        $(#[$doc:meta])+
        fn $name:ident(
            $(&$this:ident)? $($owned:ident)? $(, $argument:ident: $type:ty)* $(,)?
        ) -> $output:ty $(= $convert:expr)?;
    )+) => {$(
        $(#[$doc])+
        #[doc = concat!("\n# Errors\n\nThose of [`crate::", $of, "::", stringify!($name), "`].")]
        pub fn $name(
            $(&$this)? $($owned)? $(, $argument: $type)*
        ) -> Result<$output, Error> {
            block_on($($this)? $($owned)?.0.$name($($argument),*))$(.map($convert))?
        }
    )+};
}

mod election;
mod events;
mod lock_set;
mod loss_watch;
mod once;

pub use election::{Election, LeaderWatch, Leadership};
pub use events::LockEvents;
pub use lock_set::{GuardSet, LockSet};
pub use loss_watch::LossWatch;
pub use once::{Once, OnceRun, OnceStart};

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::fencing::{Fenced, Sequencer};
use crate::guard::ReleaseOutcome;
use crate::handle::Handle;
use crate::runtime::background::block_on;
use crate::store::{Guarantees, Store};
use crate::types::{
    BreakOptions, BreakOutcome, BreakRecord, BreakTarget, Error, Holder, Key, LockListing,
    LostReason, MemberHealth, Mode, Pattern, Waiter,
};

/// A blocking [`crate::Client`].
///
/// A guard that is dropped is released in the background. A program that returns from `main` right after that should
/// [`close`](Self::close) its client first, or release the guard; otherwise the lock may stay held until its TTL is over.
///
/// # Examples
///
/// A [handle](Handle) takes a lock to another process:
///
/// ```
/// use leasehold::{blocking, memory::MemoryStore};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let handle = locks.lock("deploy").acquire()?.into_handle()?;
/// let handle = locks.renew(&handle)?;
/// let guard = locks.adopt(&handle)?;
/// guard.release()?;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client(crate::Client);

impl Client {
    /// Returns a client of `store`, as [`crate::Client::new`] does.
    pub fn new(store: impl Into<Arc<dyn Store>>) -> Self {
        Self(crate::Client::new(store))
    }

    /// Returns the lock called `name`.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock(self.0.lock(name))
    }

    /// Returns the locks called `names`, to be acquired as one.
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockSet {
        LockSet(self.0.lock_all(names))
    }

    /// Returns the request called `name`, to be run once.
    pub fn once(&self, name: impl AsRef<str>) -> Once {
        Once(self.0.once(name))
    }

    /// Returns the lock called `name` with `permits` permits.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        Semaphore(self.0.semaphore(name, permits))
    }

    /// Returns the election of a leader among all candidates for `name`.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election(self.0.election(name))
    }

    calls! { "Client":
        /// Returns the current holders of `name` that the store knows. For diagnostics.
        fn holders(&self, name: impl AsRef<str>) -> Vec<Holder>;
        /// Returns the current waiters for `name` in the order in which the store serves them. For diagnostics.
        fn waiters(&self, name: impl AsRef<str>) -> Vec<Waiter>;
        /// Returns the first `limit` held locks, by name, that match `pattern`. For diagnostics.
        fn list_locks(&self, pattern: &Pattern, limit: usize) -> LockListing;
        /// Returns the keys of the first `limit` records, by name, that match `pattern`. For display only.
        fn list_records(&self, pattern: &Pattern, limit: usize) -> Vec<Key>;
        /// Takes the lock `name` from the holder with this fence or this owner.
        fn break_lock(
            &self, name: impl AsRef<str>, lease: impl Into<BreakTarget>, how: BreakOptions,
        ) -> BreakOutcome;
        /// Returns the record of the last break of the lock `name`, while the store keeps it. For diagnostics.
        fn last_break(&self, name: impl AsRef<str>) -> Option<BreakRecord>;
        /// Asks each member of the store and returns its health. For diagnostics and monitoring.
        fn health(&self) -> Vec<MemberHealth>;
        /// Returns whether the store still knows the grant of `sequencer`.
        fn check(&self, sequencer: &Sequencer) -> bool;
        /// Renews the lease of a handle once, and returns the handle with its new deadline.
        fn renew(&self, handle: &Handle) -> Handle;
        /// Takes a handle back: this client holds the lock from now on, and renews it.
        fn adopt(&self, handle: &Handle) -> Guard = Guard;
        /// Releases the lock of a handle, and returns the outcome.
        fn release(&self, handle: &Handle) -> ReleaseOutcome;
        /// Ends the client: its waits fail, its guards are lost, and their locks are released.
        fn close(self, limit: Duration) -> ();
        /// Waits until the store confirmed the releases of this client, for at most `limit`.
        fn flush(&self, limit: Duration) -> ();
    }

    /// Returns what happens to the locks of this client from now on, as [`crate::Client::events`] does.
    pub fn events(&self) -> LockEvents {
        LockEvents(self.0.events())
    }

    /// Returns what the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }
}

/// The name of the store, without credentials.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Self {
        Self(client)
    }
}

/// A blocking [`crate::Lock`].
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock(crate::Lock);

impl Lock {
    lock_options! { "Lock": key, mode(Mode) }

    calls! { "Lock":
        /// Acquires the lock if it is free; returns `None` if another owner holds it.
        fn try_acquire(&self) -> Option<Guard> = |free| free.map(Guard);
        /// Acquires the lock, waiting for its holders.
        fn acquire(&self) -> Guard = Guard;
    }
}

/// A blocking [`crate::Semaphore`].
///
/// # Examples
///
/// ```
/// use leasehold::{blocking, memory::MemoryStore};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let permit = locks.semaphore("workers", 2).acquire()?;
/// assert!(locks.lock("workers").try_acquire()?.is_none());
/// permit.release()?;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until a permit is acquired"]
pub struct Semaphore(crate::Semaphore);

impl Semaphore {
    lock_options! { "Semaphore": key }

    calls! { "Semaphore":
        /// Acquires a permit if one is free; returns `None` if all are held or others wait for them.
        fn try_acquire(&self) -> Option<Guard> = |free| free.map(Guard);
        /// Acquires a permit, waiting until one is free.
        fn acquire(&self) -> Guard = Guard;
    }
}

/// A blocking [`crate::Guard`]. It dereferences to that type for all methods that only read.
#[derive(Debug)]
#[must_use = "if unused the lock is freed at once; bind it to a name such as `_guard`, not to `_`"]
#[clippy::has_significant_drop]
pub struct Guard(crate::Guard);

impl Guard {
    /// Blocks until the guard is lost, and returns the reason. Never returns while the lock can be
    /// renewed. Do not call it on a [guard of the same hold](Self::reenter), which keeps the lock held.
    /// Instead, wait on a [`loss_watch`](Self::loss_watch) in another thread than the work's.
    pub fn wait_lost(&self) -> LostReason {
        block_on(self.0.lost())
    }

    /// Enters the lock once more, as [`crate::Guard::reenter`]. The last release frees it.
    pub fn reenter(&self) -> Self {
        Self(self.0.reenter())
    }

    calls! { "Guard":
        /// Turns an exclusive lock into a shared one, and lets in the waiting readers.
        fn downgrade(&self) -> ();
        /// Renews the lease now.
        fn renew(&self) -> ();
        /// Checks that the lock is held for at least `span` from now, and renews the lease if it must.
        fn ensure_renewed(&self, span: Duration) -> ();
        /// Shows the fence to a resource, which from then on refuses all earlier holders.
        fn fence_off(&self, resource: &(impl Fenced + ?Sized)) -> ();
        /// Frees the lock and returns the outcome.
        fn release(self) -> ReleaseOutcome;
    }

    /// Detaches the lock from this process, as [`crate::Guard::into_handle`] does.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Guard::into_handle`].
    pub fn into_handle(self) -> Result<Handle, Error> {
        self.0.into_handle()
    }

    /// Runs `body` while the lock is held, then frees it. A thread cannot be cancelled, so `body` should
    /// check the guard with [`ensure`](crate::Guard::ensure) before each step that matters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended, with the
    /// [reason](Error::lost_reason).
    pub fn run<T>(self, body: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        let output = body(&self);
        block_on(self.0.run(async move |_| output))
    }
}

/// Wraps an async guard, for example to [reenter](crate::Guard::reenter) a lock of a set and to request a
/// resource with it or to downgrade it.
///
/// # Examples
///
/// ```
/// use leasehold::{blocking, memory::MemoryStore};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let guards = locks.lock_all(["stock", "orders"]).acquire()?;
/// for guard in guards.guards() {
///     blocking::Guard::from(guard.reenter()).downgrade()?;
/// }
/// # guards.release();
/// # Ok::<(), leasehold::Error>(())
/// ```
impl From<crate::Guard> for Guard {
    fn from(guard: crate::Guard) -> Self {
        Self(guard)
    }
}

impl Deref for Guard {
    type Target = crate::Guard;

    fn deref(&self) -> &crate::Guard {
        &self.0
    }
}
