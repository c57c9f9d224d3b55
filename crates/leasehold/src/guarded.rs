use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::guard::{Ended, Guard};

/// A guard and a value that is to be used only while the lock is held.
///
/// [`ensure`](Self::ensure) is the one way to the value, so that no use of it can forget the check. It
/// *is* a check and no fence: the borrow it gives may outlive the span that was asked for, and what is
/// sent in time may arrive late. Ask again before each step, for as long as the step may take; where
/// the resource can compare [fences](Guard::fence), have it do so.
///
/// The value is dropped before the lock is freed, so that what it does at its end, such as to flush,
/// is still under the lock if the guard is valid then.
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
    // First: dropped before the guard.
    value: T,
    guard: Guard,
}

impl<T> Guarded<T> {
    /// Puts `value` behind `guard`.
    pub fn new(guard: Guard, value: T) -> Self {
        Self { value, guard }
    }

    /// The value, if the lock is held for at least `span` from now even if no renewal succeeds any more.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::ensure`].
    pub fn ensure(&mut self, span: Duration) -> Result<&mut T, Error> {
        self.guard.ensure(span)?;
        Ok(&mut self.value)
    }

    /// The guard.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The guard and the value, apart again.
    pub fn into_inner(self) -> (Guard, T) {
        (self.guard, self.value)
    }

    /// Drops the value, then frees the lock and says how that ended.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::release`].
    ///
    /// # Cancel safety
    ///
    /// That of [`Guard::release`].
    pub async fn release(self) -> Result<Ended, Error> {
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
