//! What a program asks for, as a value.

use std::time::Duration;

use leasehold::{Client, Error, Mode};

use crate::{BoxFuture, Held};

/// A request for a lock, a permit, or several locks.
#[derive(Clone, Debug)]
pub struct AcquireRequest {
    /// What to acquire.
    pub target: Target,
    /// How to acquire and hold it.
    pub options: Options,
}

/// What to acquire.
#[derive(Clone, Debug)]
pub enum Target {
    /// The lock of this name.
    Lock(String),
    /// One of this many permits of the lock of this name.
    Permit(String, u32),
    /// The locks of these names, all or none.
    Set(Vec<String>),
}

/// How to acquire and hold a lock. `None` and `false` leave the default of the core.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The TTL of the lease.
    pub ttl: Option<Duration>,
    /// How long to wait.
    pub wait: Wait,
    /// The maximum hold time.
    pub max_hold: Option<Duration>,
    /// How much longer the lock stays unavailable after an unclean end of its holder.
    pub lock_delay: Option<Duration>,
    /// Whether other readers may hold the lock too. Permits ignore it.
    pub shared: bool,
    /// Whether to acquire ahead of the queue.
    pub barging: bool,
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Without an end.
    #[default]
    Forever,
    /// At most this long.
    AtMost(Duration),
    /// Asks once; a busy lock is `None`, and not an error.
    Try,
}

/// Sets the options that all builders of the core have.
macro_rules! with_options {
    ($builder:expr, $options:expr) => {{
        let (mut builder, options) = ($builder, $options);
        if let Some(ttl) = options.ttl {
            builder = builder.ttl(ttl);
        }
        if let crate::Wait::AtMost(wait) = options.wait {
            builder = builder.wait(wait);
        }
        if let Some(max_hold) = options.max_hold {
            builder = builder.max_hold(max_hold);
        }
        if let Some(delay) = options.lock_delay {
            builder = builder.lock_delay(delay);
        }
        builder.barging(options.barging)
    }};
}

pub(crate) use with_options;

/// Acquires with a builder of the core.
macro_rules! acquire {
    ($builder:expr, $options:expr) => {{
        let (builder, options) = ($builder, $options);
        match options.wait {
            Wait::Try => {
                let trying = builder.try_acquire();
                Box::pin(async move { Ok(trying.await?.map(Held::from)) })
            }
            Wait::AtMost(_) | Wait::Forever => {
                let acquiring = builder.acquire();
                Box::pin(async move { acquiring.await.map(Held::from).map(Some) })
            }
        }
    }};
}

impl AcquireRequest {
    /// Acquires it with `client`. The work begins at the first poll, and dropping it withdraws the request.
    pub fn acquire(self, client: &Client) -> BoxFuture<Option<Held>> {
        let options = self.options;
        let mode = match options.shared {
            true => Mode::Shared,
            false => Mode::Exclusive,
        };
        match self.target {
            Target::Lock(name) => {
                let lock = with_options!(client.lock(name), options);
                acquire!(lock.mode(mode), options)
            }
            Target::Permit(name, permits) => {
                acquire!(
                    with_options!(client.semaphore(name, permits), options),
                    options
                )
            }
            Target::Set(names) => {
                let set = with_options!(client.lock_all(names), options);
                acquire!(set.mode(mode), options)
            }
        }
    }
}

impl Wait {
    /// Returns how long to wait for `seconds`: `None` is without an end.
    ///
    /// # Errors
    ///
    /// Those of [`span`](crate::span).
    pub fn of_seconds(seconds: Option<f64>) -> Result<Self, Error> {
        match seconds {
            Some(seconds) => crate::span(seconds).map(Self::AtMost),
            None => Ok(Self::Forever),
        }
    }
}
