use std::fmt;
use std::time::Duration;

use crate::guard::{Guard, ReleaseOutcome};
use crate::types::Error;

/// A guard and a value that must only be used while the lock is held.
///
/// [`ensure`](Self::ensure) is the only way to the value, so no use of it can forget the check. This *is* a
/// check and not a fence: the returned borrow may outlive the requested span, and what is sent in time may
/// arrive late. Call it again before each step, with the time that the step may take. If the resource can
/// compare [fences](Guard::fence), use them too.
///
/// The value is dropped before the lock is released. What its drop does, such as a flush, thus still runs
/// under the lock if the guard is valid at that time.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, Guarded, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("report").acquire().await?;
/// let mut report = Guarded::new(guard, Vec::new());
/// for line in ["one", "two"] {
///     report.ensure(Duration::from_secs(1))?.push(line);
/// }
/// report.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "if unused the lock is freed at once"]
#[clippy::has_significant_drop]
pub struct Guarded<T> {
    // Dropped first, before the guard.
    value: T,
    guard: Guard,
}

impl<T> Guarded<T> {
    /// Puts `value` behind `guard`.
    pub fn new(guard: Guard, value: T) -> Self {
        Self { value, guard }
    }

    /// Returns the value if the lock is held for at least `span` from now, even if every renewal fails.
    ///
    /// # Errors
    ///
    /// The errors of [`Guard::ensure`].
    pub fn ensure(&mut self, span: Duration) -> Result<&mut T, Error> {
        self.guard.ensure(span)?;
        Ok(&mut self.value)
    }

    /// Returns the guard.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns the guard and the value separately.
    pub fn into_inner(self) -> (Guard, T) {
        (self.guard, self.value)
    }

    /// Drops the value, then releases the lock and returns the outcome.
    ///
    /// # Errors
    ///
    /// The errors of [`Guard::release`].
    ///
    /// # Cancel safety
    ///
    /// That of [`Guard::release`].
    pub async fn release(self) -> Result<ReleaseOutcome, Error> {
        let Self { value, guard } = self;
        drop(value);
        guard.release().await
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
