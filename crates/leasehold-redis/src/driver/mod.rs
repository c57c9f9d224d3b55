//! Drives the engine of `leasehold-quorum` for one client: owns the connections to all members.
//!
//! One thread per client reads all connections, keeps the only timer, and opens connections again.
//! Futures of callers submit operations to a list. One thread at a time takes the whole list, carries it out in
//! the engine, and writes the requests. The choice of that thread decides about the speed:
//!
//! - A caller does it at once if no other caller waits for an operation.
//! - On a runtime with several threads the first caller of a batch yields once. The other ready tasks
//!   submit their operations, and one write to each member sends all.
//! - Elsewhere a caller does it at once if no server has yet to reply. Otherwise the thread does it.
//! - If the engine is busy with something else, the thread does it: no caller waits for the engine.
//! - Encrypted connections are written by the thread.
//!
//! No thread writes while it holds a mutex. A future that is dropped leaves the work to the thread. Each
//! batch ends with a sample of the server's clock and of the epoch of its record.

mod ask;
mod call;
mod config;
mod connection_task;
mod flush;
mod member_events;
mod shared;
mod state;
mod submissions;
mod thread;

use std::fmt;
use std::sync::Arc;

use leasehold::Error;
use leasehold::env::Env;
use leasehold::store::{Claim, Held, MemberId, RecordKey};
use leasehold_quorum::{Engine, Operation, RecordAction, ReleaseMode};

pub use call::Call;
pub use config::DriverConfig;
use config::Parts;
use shared::Shared;
use state::State;

use crate::codec::Codec;
use crate::url::RedisUrl;

/// All connections of one client, and the engine that they serve.
///
/// Dropping it does not wait: the thread finishes what is under way and ends by itself.
pub struct Driver {
    shared: Arc<Shared>,
    codecs: Vec<Codec>,
}

impl Driver {
    /// Starts the I/O thread, which connects to all members.
    ///
    /// # Errors
    ///
    /// If a URL or the set of them breaks a rule, or the system has no room for a thread.
    pub fn open(config: DriverConfig) -> Result<Self, Error> {
        let parts = config.into_parts()?;
        Self::start_thread(parts)
    }

    /// Starts the I/O thread of a driver without an engine. It connects to a member when a caller asks it
    /// something, and tells the servers nothing else.
    pub(crate) fn without_engine(urls: Vec<RedisUrl>, env: &Env) -> Result<Self, Error> {
        Self::start_thread(Parts::new(urls, None, env)?)
    }

    fn start_thread(parts: Parts) -> Result<Self, Error> {
        let engine = parts.engine.map(Engine::new);
        let codecs = parts
            .connections
            .iter()
            .map(|connection| connection.codec().clone());
        let codecs = codecs.collect();
        let state = State::new(engine, parts.connections, parts.gauges);
        let shared = Arc::new(Shared::new(parts.clock, parts.members, state));
        thread::start(Arc::clone(&shared), parts.tasks)?;
        Ok(Self { shared, codecs })
    }

    /// The members, in the order of their numbers.
    pub fn members(&self) -> &[MemberId] {
        &self.shared.members
    }

    /// Takes a lock. The operation begins at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call gives back what it took or may have taken.
    pub fn acquire(&self, claim: Arc<Claim>) -> Call {
        self.start(Operation::Acquire(claim))
    }

    /// Extends leases.
    pub fn renew(&self, held: Vec<Held>) -> Call {
        self.start(Operation::Renew(held))
    }

    /// Frees a lease. The operation begins at once, and goes on if the call is dropped.
    pub fn release(&self, claim: Arc<Claim>, mode: ReleaseMode) -> Call {
        self.start(Operation::Release(claim, mode))
    }

    /// Opens, writes or reads a record.
    pub fn record(&self, record: RecordKey, action: RecordAction) -> Call {
        self.start(Operation::Record(record, action))
    }

    /// Asks each member for its status.
    pub fn health(&self) -> Call {
        self.start(Operation::Health)
    }

    /// Waits until nothing is in flight at members that answer. Does not wait for slow ones once a majority has
    /// decided.
    pub async fn flush(&self) {
        if !self.shared.is_forked() {
            self.shared.idle().await;
        }
    }

    /// Lets no further operation begin, waits for those under way, and ends the thread.
    pub async fn close(&self) {
        if !self.shared.is_forked() {
            self.begin_close();
            self.shared.ended().await;
        }
    }

    fn start(&self, operation: Operation) -> Call {
        Call::start(Arc::clone(&self.shared), operation)
    }

    fn begin_close(&self) {
        self.shared.close();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // In a forked child the mutex may never become free.
        if !self.shared.is_forked() {
            self.begin_close();
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
