//! What the command line does with a kind of store, next to its locks. Each kind implements these traits in a folder of
//! its own.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use leasehold::look::Owner;
use leasehold::store::Store;
use serde_json::{Value, json};

use crate::output::failure::Failure;
use crate::output::report::Report;
#[cfg(feature = "redis")]
use crate::store::Quorum;

/// A store that was chosen, and that is not opened yet.
pub(crate) trait Backend {
    /// Opens the store for locks. Checks its addresses, and sends nothing.
    fn open(&self) -> Result<Opened, Failure>;

    /// Checks the store for `leasehold doctor`. A server that does not answer within `limit` counts as silent. Changes nothing, and
    /// creates nothing.
    fn examine(&self, limit: Duration) -> Result<Report, Failure>;

    /// Removes what unused locks left behind, for `leasehold gc`: those that were not used for `unused_for`. With `dry`, only counts it.
    /// Fails if the store removes it by itself.
    fn remove_unused(&self, _unused_for: Duration, _dry: bool) -> Result<Cleaned, Failure> {
        Err(Failure::usage(
            "gc is for lock files; the servers of this store remove unused names by themselves",
        ))
    }

    /// Creates or migrates what the store keeps its locks in, for `leasehold init`. Does nothing if that is done, or if the
    /// store needs no such step.
    fn prepare(&self) -> Result<Prepared, Failure> {
        Ok(Prepared::nothing(&self.open()?.store))
    }

    /// Whether `leasehold init` initializes its servers as a [quorum](Self::quorum) instead.
    fn is_quorum(&self) -> bool {
        false
    }

    /// Returns how many of its servers keep a copy of a lock of their own. The members of an ensemble keep one together.
    fn copies(&self) -> usize {
        1
    }

    /// Returns the servers for `leasehold init` and `leasehold members`. Fails if the store has none that the operator
    /// initializes and changes.
    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure>;
}

/// What `leasehold gc` did.
#[derive(Debug)]
pub(crate) struct Cleaned {
    pub(crate) removed: usize,
    pub(crate) kept: usize,
}

/// What `leasehold init` did.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// For people: lines that end with a line break.
    pub(crate) text: String,
    /// For `--json`.
    pub(crate) json: Value,
}

impl Prepared {
    /// What it did at a store that needs no such step.
    pub(crate) fn nothing(store: &dyn fmt::Display) -> Self {
        let store = store.to_string();
        Self {
            text: format!("nothing to do: {store} needs no initialization\n"),
            json: json!({"store": store}),
        }
    }
}

/// A store that takes locks.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same store in a form that writes nothing, for monitoring. `None` if the store itself is one.
    pub(crate) reader: Option<Arc<dyn Store>>,
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
