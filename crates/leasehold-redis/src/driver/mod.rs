//! Drives the engine of `leasehold-quorum` for one client: owns the connections to all members.
//!
//! One thread per client reads all connections, keeps the only timer, and opens connections again.
//! Futures of callers begin operations under one mutex and append requests to the members' buffers.
//! The choice of the writer decides about the speed:
//!
//! - On a runtime with several threads the first caller of a batch yields once. The other ready tasks
//!   append, and one write to each member sends all.
//! - Elsewhere a caller writes at once if no server has yet to reply. Otherwise the thread writes.
//! - Encrypted connections are written by the thread.
//!
//! No thread writes while it holds the mutex. A future that is dropped passes its duty to write to the
//! thread. Each batch ends with a sample of the server's clock and of the mark of its record.

mod call;
mod config;
mod connection;
mod info;
mod link;
mod open;
mod opening;
mod shared;
mod socket;
mod state;
mod thread;

use std::fmt;
use std::sync::Arc;

use leasehold::{Claim, Error, Held, MemberId};
use leasehold_quorum::{Engine, Operation, ReleaseMode, Reply, Request};
use tokio::sync::oneshot;

pub use call::Call;
pub use config::DriverConfig;
use open::Asker;
use shared::{Shared, Side};
use state::State;

/// All connections of one client, and the engine that they serve.
///
/// Dropping it does not wait: the thread finishes what is under way and ends by itself.
pub struct Driver {
    shared: Arc<Shared>,
    members: Vec<MemberId>,
}

impl Driver {
    /// Starts the I/O thread, which connects to all members.
    ///
    /// # Errors
    ///
    /// If a URL or the set of them breaks a rule, or the system has no room for a thread.
    pub fn open(config: DriverConfig) -> Result<Self, Error> {
        let parts = config.into_parts()?;
        let members = parts.engine.set.ids.clone();
        let engine = Engine::new(parts.engine);
        let state = State::new(engine, parts.links);
        let shared = Arc::new(Shared::new(parts.clock, state));
        thread::start(Arc::clone(&shared), parts.connections)?;
        Ok(Self { shared, members })
    }

    /// The members, in the order of their numbers.
    pub fn members(&self) -> &[MemberId] {
        &self.members
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

    /// Asks one member, past the engine.
    ///
    /// # Errors
    ///
    /// If the member is not connected, or the connection breaks before it replies.
    ///
    /// # Cancel safety
    ///
    /// The request is sent even if the future is dropped after its first poll.
    pub async fn ask(&self, member: usize, request: Request) -> Result<Reply, Error> {
        if self.shared.is_forked() {
            return Err(call::forked());
        }
        let (sender, reply) = oneshot::channel();
        // Administration is rare, so the thread may write.
        self.shared.update(Side::Thread, |state, _| {
            if let Some(link) = state.links.get_mut(member) {
                state.unwritten |= link.push(Asker::Caller(sender), request);
            }
        });
        reply.await.unwrap_or_else(|_| Err(call::closed()))
    }

    /// Waits until nothing is in flight at members that answer.
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
        self.shared
            .update(Side::Thread, |state, _| state.closing = true);
        self.shared.notify_thread();
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
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}
