//! What the command line does with a kind of store, next to its locks. Each kind implements these traits in a folder of
//! its own.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Error;
use leasehold::store::{BoxFuture, MemberId, MemberRecord, MemberSet, MemberStatus, Owner, Store};

use crate::output::failure::Failure;
use crate::output::report::Report;

/// A store that was chosen, and that is not opened yet.
pub(crate) trait Backend {
    /// Opens the store for locks. Checks its addresses, and sends nothing.
    fn open(&self) -> Result<Opened, Failure>;

    /// Checks the store for `leasehold doctor`. Changes nothing, and creates nothing.
    fn examine(&self) -> Result<Report, Failure>;

    /// Returns the servers for `leasehold init` and `leasehold members`. Fails if the store has none that the operator
    /// initializes and changes.
    fn quorum(&self) -> Result<Box<dyn Quorum>, Failure>;
}

/// A store that takes locks.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The ids of its servers, without credentials.
    pub(crate) members: Vec<String>,
    /// The descriptors that hold its locks, if the store uses them.
    pub(crate) descriptors: Option<Box<dyn Descriptors>>,
}

/// A store whose locks end with the last process that has their descriptor.
pub(crate) trait Descriptors: fmt::Debug {
    /// Returns the descriptor that holds the lock of `owner`.
    fn descriptor(&self, owner: Owner) -> Option<OwnedFd>;
}

/// Servers that keep a record of their quorum, as an operator sees them.
pub(crate) trait Quorum {
    /// Returns the addresses of the servers.
    fn urls(&self) -> &[String];

    /// Returns the ids of the servers, in the order of their addresses.
    fn ids(&self) -> Vec<MemberId>;

    /// Returns the id of the server at `url`.
    fn id_at(&self, url: &str) -> Result<MemberId, Failure>;

    /// Returns the address of a server at `url` that takes the id of a member.
    fn with_id(&self, url: &str, id: &MemberId) -> Result<String, Failure>;

    /// Returns the quorum of the servers at `urls`.
    fn at(&self, urls: &[String]) -> Result<Box<dyn Quorum>, Failure>;

    /// Returns this quorum with the limits to initialize it with. `None` for the default.
    fn within(
        &self,
        max_ttl: Option<Duration>,
        clock_tolerance: Option<Duration>,
    ) -> Result<Box<dyn Quorum>, Failure>;

    /// Returns the servers, with the limits that most of these records state.
    fn stated_set(&self, records: &[&MemberRecord]) -> MemberSet;

    /// Asks the server in this place for its status. Writes nothing.
    fn status(&self, place: usize) -> BoxFuture<'_, Result<MemberStatus, Error>>;

    /// Initializes the quorum. Returns `false` if there is nothing to do. With `is_new`, the operator states that the
    /// servers were new before the first lock.
    fn init(&self, is_new: bool) -> BoxFuture<'_, Result<bool, Error>>;

    /// Makes this quorum the successor of the one at `old`. The two differ by one server. Returns the new quorum.
    fn succeed<'a>(&'a self, old: &'a [String]) -> BoxFuture<'a, Result<MemberSet, Error>>;

    /// Checks what [`succeed`](Self::succeed) checks, and writes nothing.
    fn check_succession<'a>(&'a self, old: &'a [String])
    -> BoxFuture<'a, Result<MemberSet, Error>>;

    /// Completes the move of a server from the address `former` to the one in this quorum. With `is_gone`, the operator
    /// states that the former server is stopped for good.
    fn replace<'a>(&'a self, former: &'a str, is_gone: bool) -> BoxFuture<'a, Result<(), Error>>;

    /// Gives a server that lost its data a new record. Returns `false` if it has one.
    fn readmit<'a>(&'a self, id: &'a MemberId) -> BoxFuture<'a, Result<bool, Error>>;
}
