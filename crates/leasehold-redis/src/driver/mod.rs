//! Drives the engine of `leasehold-quorum` for one client: owns the connections to all members.
//!
//! The client's thread opens the connections and keeps the only timer. Futures of callers submit operations to a list.
//! One thread at a time takes the whole list, carries it out in the engine, and writes the requests:
//!
//! - A caller does it at once if no other call is open.
//! - Otherwise the first caller of a batch yields once, so that the other ready tasks submit their operations, and
//!   one write to each member sends all. The 32nd caller of a batch does it at once, so that the server can begin.
//! - If another thread works with the engine, that thread takes the list again: no caller waits for the engine.
//! - If no caller is polled, the client's thread does it within 10 ms.
//!
//! [`SocketReader`](leasehold::store::SocketReader) says which task reads. Each batch ends with a sample of the server's clock and of
//! the epoch of its record.

mod ask;
mod call;
mod combining;
#[cfg(test)]
#[expect(
    clippy::duplicate_mod,
    reason = "it replaces what `combining` is made of"
)]
mod combining_tests;
mod config;
mod connection_task;
mod flush;
mod member_events;
mod reading;
mod shared;
mod state;
mod submissions;
mod thread;

/// What [`combining`] is made of. Its test replaces it.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, Ordering};
    pub(super) use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
}

use std::fmt;
use std::sync::Arc;

use leasehold::Error;
use leasehold::env::Env;
use leasehold::member::MemberId;
use leasehold::store::SessionContext;
use leasehold_quorum::{Engine, PerMember};

pub use call::Call;
pub use config::DriverConfig;
use config::Parts;
use connection_task::ConnectionTask;
use shared::Shared;
use state::DriverState;

use crate::codec::Codec;
use crate::connection::state::Connection;
use crate::url::RedisUrl;
pub use crate::url::parse_all;

/// All connections of one client, and the engine that they serve.
///
/// Dropping it does not wait: the client's thread finishes what is under way.
pub struct Driver {
    shared: Arc<Shared>,
    codecs: PerMember<Codec>,
}

impl Driver {
    /// Connects to all members. The work runs on the thread of the client.
    pub fn open(config: DriverConfig, context: &SessionContext) -> Self {
        let (driver, tasks) = Self::new(config.into_parts(context));
        context.spawn(thread::run(Arc::clone(&driver.shared), tasks));
        driver
    }

    /// Starts a thread and a driver without an engine. It connects to a member when a caller asks it something, and
    /// tells the servers nothing else.
    ///
    /// # Errors
    ///
    /// If a URL breaks a rule, or the system has no room for a thread.
    pub(crate) fn without_engine(urls: Vec<RedisUrl>, env: &Env) -> Result<Self, Error> {
        let (driver, tasks) = Self::new(Parts::new(urls, None, env));
        thread::start(Arc::clone(&driver.shared), tasks)?;
        Ok(driver)
    }

    fn new(parts: Parts) -> (Self, Vec<ConnectionTask>) {
        let engine = parts.engine.map(Engine::new);
        let codecs = parts.connections.iter().map(Connection::codec).cloned();
        let codecs = codecs.collect();
        let state = DriverState::new(engine, parts.connections, parts.gauges);
        let shared = Arc::new(Shared::new(parts.clock, parts.members, state));
        (Self { shared, codecs }, parts.tasks)
    }

    /// The members, in the order of their numbers.
    pub fn members(&self) -> &PerMember<MemberId> {
        &self.shared.members
    }

    /// Waits until nothing is in flight at members that answer. Does not wait for slow ones once a majority has
    /// decided.
    pub async fn flush(&self) {
        if !self.shared.is_forked() {
            self.shared.idle().await;
        }
    }

    /// Returns how many leases may stay taken until they end, since too few members confirmed their release.
    pub fn unconfirmed_releases(&self) -> usize {
        match self.shared.is_forked() {
            true => 0,
            false => {
                let now = self.shared.now();
                self.shared.look(|state| state.unconfirmed_releases(now))
            }
        }
    }

    /// Lets no further operation begin, waits for those under way, and closes the connections.
    pub async fn close(&self) {
        if !self.shared.is_forked() {
            self.shared.close();
            self.shared.ended().await;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // In a forked child the mutex may never become free.
        if !self.shared.is_forked() {
            self.shared.close();
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("members", &self.shared.members)
            .finish_non_exhaustive()
    }
}
