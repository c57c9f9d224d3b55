use std::fmt;
use std::time::Duration;

use crate::blocking::Guard;
use crate::guard::ReleaseOutcome;
use crate::types::Error;

/// A blocking [`crate::Guarded`].
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

    /// Returns the value if the lock is held for at least `span`, as [`crate::Guarded::ensure`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::Guard::ensure`].
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
    /// The errors of [`crate::Guard::release`].
    pub fn release(self) -> Result<ReleaseOutcome, Error> {
        let Self { value, guard } = self;
        drop(value);
        guard.release()
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
