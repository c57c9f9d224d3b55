//! What the bindings of all languages share: a client that opens at its first use, the requests and what they hold, the
//! calls that an event loop polls, and the values that a program sees.
//!
//! A binding has no runtime. It polls the futures of the core on the caller's own thread ([`Calls`]), so no code of the
//! caller runs in a thread of the core, and dropping a call cancels it. No thread of the core needs the lock of an interpreter, so a
//! busy interpreter costs no lease.
//!
//! A runtime of its own would need threads that a fork does not survive, and would hand each answer over twice. With 64 calls at
//! once, a bridge with `pyo3-async-runtimes` made a fifth of the cycles. An event loop could also read the sockets of the client,
//! and spare its thread. That gained 5 % with one call at a time, for a second way to wait for sockets.

mod calls;
mod client;
mod election;
mod error;
mod held;
mod inspect;
mod once;
mod request;

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use calls::{Calls, Signal, Started};
pub use client::LazyClient;
pub use election::{Campaign, LeaderChangeFields, LeaderFields, Watch};
pub use error::{ErrorFields, released_before};
pub use held::Held;
pub use inspect::{
    BreakFields, Breaking, ClientFields, HolderFields, ListingFields, LockFields, MemberFields,
    WaiterFields,
};
pub use once::{OnceFields, OnceRequest, OnceStep};
pub use request::{AcquireRequest, Options, Target, Wait};

use leasehold::{Error, ErrorKind, ReleaseOutcome};

/// A future of the core that a binding polls.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// Returns the time span of `seconds`.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] for a negative number, and for one that is not finite.
pub fn span(seconds: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(seconds).map_err(|error| {
        let text = format!("{seconds} s is not a time span: {error}");
        Error::new(ErrorKind::InvalidInput, text)
    })
}

/// Returns the name of an outcome, for programs.
pub fn outcome_name(outcome: ReleaseOutcome) -> &'static str {
    match outcome {
        ReleaseOutcome::Released => "released",
        ReleaseOutcome::WasLost => "was_lost",
        _ => "still_held",
    }
}

/// Locks a mutex, also after a panic. Each value here is whole after every step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
