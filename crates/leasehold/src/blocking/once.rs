use std::ops::Deref;
use std::time::Duration;

use crate::guard::Guard;
use crate::once::{OnceProgress, OnceResult};
use crate::runtime::background::block_on;
use crate::types::{Error, Holder, Key};

/// A blocking [`crate::once::Once`].
///
/// # Examples
///
/// ```
/// use leasehold::{Guard, blocking, memory::MemoryStore};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let charge = locks.once("charge/4711").payload("EUR 12.00");
/// let pay = |guard: &Guard| Ok::<_, String>(format!("paid under {}", guard.fence()));
/// let paid = charge.run(pay)??;
/// assert_eq!(charge.run(pay)??.bytes, paid.bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is run"]
pub struct Once(pub(super) crate::once::Once);

/// A blocking [`crate::once::OnceStart`].
#[derive(Debug)]
#[must_use]
pub enum OnceStart {
    /// This caller must run the request.
    Run(OnceRun),
    /// The request is done.
    Done(OnceResult),
    /// Another caller is running it; its holder, if the store knows it.
    InProgress(Option<Holder>),
}

/// A blocking [`crate::once::OnceRun`].
#[derive(Debug)]
#[must_use = "if unused the request is left to the next caller"]
#[clippy::has_significant_drop]
pub struct OnceRun(crate::once::OnceRun);

impl Once {
    lock_options! { "once::Once": key, retention(Duration) }

    /// Sets the payload, as [`crate::once::Once::payload`] does.
    pub fn payload(self, payload: impl AsRef<[u8]>) -> Self {
        Self(self.0.payload(payload))
    }

    calls! { "once::Once":
        /// Returns the result if the request is certainly done.
        fn result(&self) -> Option<OnceResult>;
        /// Determines whether this caller runs the request, and waits for a caller that is running it.
        fn begin(&self) -> OnceStart = OnceStart::of;
        /// [`begin`](Self::begin) without waiting.
        fn try_begin(&self) -> OnceStart = OnceStart::of;
        /// Returns how far the request is, without comparing its payload.
        fn progress(&self) -> OnceProgress;
        /// Forgets the request, and returns whether there was a result or an attempt.
        fn forget(&self) -> bool;
    }

    /// Runs `body` unless the request is done, and commits what it returns. `body` gets the guard of this attempt. A thread
    /// cannot be cancelled, so `body` should call [`ensure`](Guard::ensure) before each step that matters.
    ///
    /// # Errors
    ///
    /// The errors of [`crate::once::Once::run`].
    pub fn run<R: AsRef<[u8]>, E>(
        &self,
        body: impl FnOnce(&Guard) -> Result<R, E>,
    ) -> Result<Result<OnceResult, E>, Error> {
        block_on(self.0.run(async move |guard: &Guard| body(guard)))
    }
}

impl OnceStart {
    fn of(start: crate::once::OnceStart) -> Self {
        match start {
            crate::once::OnceStart::Run(run) => Self::Run(OnceRun(run)),
            crate::once::OnceStart::Done(result) => Self::Done(result),
            crate::once::OnceStart::InProgress(holder) => Self::InProgress(holder),
        }
    }
}

impl OnceRun {
    calls! { "once::OnceRun":
        /// Commits the result, and releases the lock.
        fn commit(self, result: impl AsRef<[u8]>) -> OnceResult;
        /// Withdraws the request, as if it had never been made.
        fn give_up(self) -> ();
    }
}

impl Deref for OnceRun {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        self.0.guard()
    }
}
