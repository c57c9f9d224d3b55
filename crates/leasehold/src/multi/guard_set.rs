use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{join_all, select_all};

use crate::env::clock::BootInstant;
use crate::guard::{Guard, GuardState, ReleaseOutcome};
use crate::types::{Error, Fence, Key, LostReason};

/// Several locks that are held together, until they are released or dropped, or one of them is lost.
///
/// Each lock has its own lease and fence, which the client renews. As soon as one is lost, the set is lost
/// and stays lost. The others stay held and renewed until the set is released or dropped, so that work
/// under them can first come to an end.
///
/// Dropping the set releases all locks in the background.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guards = locks.lock_all(["stock", "orders"]).acquire().await?;
/// guards.ensure(Duration::from_secs(5))?; // all of them, at least this long, or an error
/// for (key, fence) in guards.fences() {
///     println!("write to {key} with fence {fence}");
/// }
/// guards.release().await;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "if unused the locks are freed at once"]
#[clippy::has_significant_drop]
pub struct GuardSet {
    /// Sorted by key. Empty only while the locks are being acquired.
    guards: Vec<Guard>,
}

impl From<Guard> for GuardSet {
    /// Returns the set of this one guard.
    fn from(guard: Guard) -> Self {
        Self::of([guard]).handed_out()
    }
}

impl GuardSet {
    /// Returns the set of `guards`, which are sorted by key.
    pub(crate) fn of(guards: impl IntoIterator<Item = Guard>) -> Self {
        let mut set = Self { guards: Vec::new() };
        guards.into_iter().for_each(|guard| set.add(guard));
        set
    }

    /// Adds a guard whose key sorts after the others. No caller has the set yet: if a guard is lost before
    /// the set is handed out, no work runs under it.
    pub(crate) fn add(&mut self, guard: Guard) {
        guard.held_lease().hand_out(false);
        self.guards.push(guard);
    }

    /// Returns the names of the locks, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.guards.iter().map(Guard::key)
    }

    /// Returns the guard of the lock called `name`, if the set contains it; for example to pass its fence
    /// to a resource.
    pub fn guard(&self, name: impl AsRef<str>) -> Option<&Guard> {
        let name = name.as_ref();
        self.guards
            .iter()
            .find(|guard| guard.key().as_str() == name)
    }

    /// Returns the guards of all locks, in the order of their names.
    pub fn guards(&self) -> impl ExactSizeIterator<Item = &Guard> {
        self.guards.iter()
    }

    /// Returns the guards as separate guards, in the order of their names.
    pub fn into_guards(self) -> impl ExactSizeIterator<Item = Guard> {
        self.guards.into_iter()
    }

    /// Returns the fencing token of the lock called `name`, if the set contains it.
    pub fn fence(&self, name: impl AsRef<str>) -> Option<Fence> {
        self.guard(name).map(Guard::fence)
    }

    /// Returns each lock with its fencing token, in the order of their names.
    pub fn fences(&self) -> impl ExactSizeIterator<Item = (&Key, Fence)> {
        self.guards.iter().map(|guard| (guard.key(), guard.fence()))
    }

    /// Returns the earliest [`deadline`](Guard::deadline) of a lock; `None` if no lock has one.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.guards.iter().filter_map(Guard::deadline).min()
    }

    /// Returns the time left until the deadline: zero once a lock is lost, [`Duration::MAX`] if there is no
    /// deadline.
    pub fn remaining(&self) -> Duration {
        let left = self.guards.iter().map(Guard::remaining);
        left.min().unwrap_or_default()
    }

    /// Returns whether all locks are held at this instant. Once false, it stays false.
    pub fn is_valid(&self) -> bool {
        self.first_lost().is_none()
    }

    /// Returns whether renewals of a lock are failing, while all are still held.
    pub fn is_in_doubt(&self) -> bool {
        self.is_valid() && self.guards.iter().any(Guard::is_in_doubt)
    }

    /// Checks that all locks are held for at least `span` from now, even if every renewal fails. Call it
    /// before each step that must not happen without them.
    ///
    /// # Errors
    ///
    /// The errors of [`Guard::ensure`], for the first lock that fails the check.
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        self.guards.iter().try_for_each(|guard| guard.ensure(span))
    }

    /// Resolves with the name of a lock and the reason once that lock is lost. In a forked child it resolves
    /// at once.
    ///
    /// The future can be passed to the work under the locks, as that of [`Guard::lost`].
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub fn lost(&self) -> impl Future<Output = (Key, LostReason)> + Send + use<> {
        let lost = |guard: &Guard| {
            let (key, lost) = (guard.key().clone(), guard.lost());
            Box::pin(async move { (key, lost.await) })
        };
        let losses: Vec<_> = self.guards.iter().map(lost).collect();
        async move {
            if losses.is_empty() {
                return std::future::pending().await;
            }
            let (first, ..) = select_all(losses).await;
            first
        }
    }

    /// Waits until the [`deadline`](Self::deadline) differs from `from`, and returns it. For passing the
    /// deadline on to other code that must meet it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the next call returns any change that was missed.
    pub async fn deadline_moved(&self, from: Option<BootInstant>) -> Option<BootInstant> {
        loop {
            // Read before waiting: the wait below notices any later change.
            let seen: Vec<_> = self.guards.iter().map(Guard::deadline).collect();
            let deadline = seen.iter().flatten().min().copied();
            if deadline != from {
                return deadline;
            }
            let guards = self.guards.iter().zip(seen);
            select_all(guards.map(|(guard, seen)| Box::pin(guard.deadline_moved(seen)))).await;
        }
    }

    /// Releases all locks at the same time, and returns the outcome for each, in the order of their names.
    /// See [`Guard::release`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answers: the locks are released in the background.
    pub async fn release(self) -> Vec<(Key, Result<ReleaseOutcome, Error>)> {
        let releases = self.guards.into_iter().map(|guard| async move {
            let key = guard.key().clone();
            (key, guard.release().await)
        });
        join_all(releases).await
    }

    /// Marks all locks as lost, as [`Guard::give_up`] does.
    pub fn give_up(&self) {
        self.guards.iter().for_each(Guard::give_up);
    }

    /// Returns the set in the state in which the caller receives it.
    pub(crate) fn handed_out(self) -> Self {
        let held_leases = self.guards.iter().map(Guard::held_lease);
        held_leases.for_each(|held_lease| held_lease.hand_out(true));
        self
    }

    /// Runs `body` while the locks are held, and then releases them. `body` gets the guards. It is dropped as soon as a lock
    /// is lost, and the locks are released only after it stopped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) with the name of the lock and the [reason](Error::lost_reason) if one was
    /// lost before `body` ended; the output, if there was one, is dropped. A release that fails afterwards is logged, not
    /// returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then frees the locks in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// if let Some(guards) = locks.lock_all(["stock", "orders"]).try_acquire().await? {
    ///     let moved = guards.run(async |guards| guards.fence("stock")).await?;
    ///     assert!(moved.is_some());
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn run<T>(self, body: impl AsyncFnOnce(&Self) -> T) -> Result<T, Error> {
        let output = {
            let body = pin!(body(&self));
            tokio::select! {
                biased;
                lost = self.lost() => Err(lost),
                output = body => self.first_lost().map_or(Ok(output), Err),
            }
        };
        for (key, released) in self.release().await {
            if let Err(error) = released {
                tracing::warn!(%key, %error, "release failed");
            }
        }
        output.map_err(|(key, reason)| lost_error(&key, reason))
    }

    pub(crate) fn first_lost(&self) -> Option<(Key, LostReason)> {
        self.guards.iter().find_map(|guard| match guard.state() {
            GuardState::Lost(reason) => Some((guard.key().clone(), reason)),
            GuardState::Held | GuardState::InDoubt => None,
        })
    }
}

fn lost_error(key: &Key, reason: LostReason) -> Error {
    Error::lost(reason).with_key(key)
}

impl fmt::Debug for GuardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.guards).finish()
    }
}
