//! What the command line does with a kind of store, next to its locks. Each kind implements these traits in a folder of
//! its own.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use leasehold::store::{Owner, Store};

use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::store::Quorum;

/// A store that was chosen, and that is not opened yet.
pub(crate) trait Backend {
    /// Opens the store for locks. Checks its addresses, and sends nothing.
    fn open(&self) -> Result<Opened, Failure>;

    /// Checks the store for `leasehold doctor`. Changes nothing, and creates nothing.
    fn examine(&self) -> Result<Report, Failure>;

    /// Returns the servers for `leasehold init` and `leasehold members`. Fails if the store has none that the operator
    /// initializes and changes.
    fn quorum(&self) -> Result<Quorum, Failure>;
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
