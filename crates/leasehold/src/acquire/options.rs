use std::time::Duration;

use crate::lease::ClientContext;
use crate::store::{Expiry, LockRequest};
use crate::types::{Error, ErrorKind, Mode, exact_span};

/// How to acquire and hold a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockOptions {
    pub(crate) ttl: Duration,
    /// The program did not choose the TTL, so it follows the bounds of the store.
    pub(crate) is_default_ttl: bool,
    /// How much longer the lease lives at the store than the guard uses it.
    pub(crate) lock_delay: Duration,
    pub(crate) wait: Option<Duration>,
    /// Whether the wait is that of the client.
    pub(crate) is_default_wait: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) mode: Mode,
    /// Whether to acquire ahead of the queue.
    pub(crate) barging: bool,
}

impl LockOptions {
    pub(crate) const DEFAULT_TTL: Duration = Duration::from_secs(30);

    /// Returns the wait that was chosen for this lock.
    pub(crate) fn own_wait(&self) -> Option<Duration> {
        self.wait
            .filter(|wait| !self.is_default_wait && !wait.is_zero())
    }

    /// Returns the TTL: if the program chose none, the nearest one that is in these bounds with the lock delay.
    pub(super) fn fitting_ttl(&self, least: Duration, most: Duration) -> Duration {
        let most = most.saturating_sub(self.lock_delay);
        match self.is_default_ttl && least <= most {
            true => self.ttl.clamp(least, most),
            false => self.ttl,
        }
    }

    /// Returns how long a call that does not wait may take.
    pub(super) fn call_limit(&self) -> Duration {
        LockRequest::limit_of(self.ttl).min(LockRequest::LIMIT_MAX)
    }

    /// Returns the error of an attempt that got no answer within `limit`.
    pub(super) fn too_late(context: &ClientContext, limit: Duration) -> Error {
        context.named(Error::no_answer_within(limit).with_unknown_effect())
    }

    /// Fails if the store does not offer this.
    pub(super) fn check(&self, context: &ClientContext) -> Result<(), Error> {
        let (store, guarantees) = (&context.store, context.guarantees);
        // Checked even if leases do not expire, so that the same settings work on every store.
        let terms = context.terms;
        if self.ttl < terms.ttl_min || self.ttl > terms.ttl_max {
            let text = format!(
                "TTL {} is out of bounds; {store} allows {} to {}",
                exact_span(self.ttl),
                exact_span(terms.ttl_min),
                exact_span(terms.ttl_max)
            );
            let error = Error::new(ErrorKind::InvalidInput, text);
            return Err(error.with_ttl_bounds(terms.ttl_min, terms.ttl_max));
        }
        self.check_delay(context)?;
        if self.max_hold.is_some_and(|span| span.is_zero()) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "max_hold is zero, so the guard would be lost at once; use a longer time",
            ));
        }
        if self.mode == Mode::Shared && !guarantees.shared {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{store} does not support shared locks"),
            ));
        }
        if matches!(self.mode, Mode::Permit(_)) && !guarantees.permits {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{store} does not support permits"),
            ));
        }
        Ok(())
    }

    fn check_delay(&self, context: &ClientContext) -> Result<(), Error> {
        let store = &context.store;
        if self.lock_delay.is_zero() {
            return Ok(());
        }
        if context.guarantees.expiry != Expiry::Lease {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "lock_delay {} is not supported by {store}, where a lock ends with the process that holds it",
                    exact_span(self.lock_delay)
                ),
            ));
        }
        let longest = context.terms.ttl_max;
        // The TTL alone is within the bounds.
        if self.lock_delay > longest.saturating_sub(self.ttl) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "TTL {} and lock_delay {} are too long; {store} allows at most {} together",
                    exact_span(self.ttl),
                    exact_span(self.lock_delay),
                    exact_span(longest)
                ),
            ));
        }
        Ok(())
    }
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            ttl: Self::DEFAULT_TTL,
            is_default_ttl: true,
            lock_delay: Duration::ZERO,
            wait: None,
            is_default_wait: true,
            max_hold: None,
            mode: Mode::Exclusive,
            barging: false,
        }
    }
}
