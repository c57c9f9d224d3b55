//! The directory of lock files as a store.

mod inspection;
mod options;
mod records;
mod renewal;
mod session;

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Owner, Session, SessionContext, Store,
};
use leasehold::{Error, Key};

use crate::directory::Directory;
use crate::locking::table::Table;
use crate::locking::waiters::Waiters;

pub use options::FileStoreOptions;
use session::FileSession;

/// Locks between the processes of one machine: a directory of lock files, each held by `flock(2)`.
///
/// A lock is free as soon as its holder ends, however it ends; it never expires before. The kernel
/// then notifies all waiters, and the first one to try wins. They are served in no order, because a
/// waiter could not leave the kernel's own queue (see [the crate](crate#waiting)). Requests that share
/// the lock yield to one that waits for the exclusive lock. `flock(1)` on [`FileStore::lock_file`]
/// excludes the same locks, both ways, except for `flock -s` and [permits](crate#limits).
///
/// Fences come from a counter in the lock file, which is on the disk before a grant is returned. A
/// directory in memory (`/run/lock` is one on most systems) loses its counters at a restart. There
/// the wall clock carries the fences on, and [`Store::guarantees`] says so.
///
/// Clones share what they hold. Dropping the last one frees everything.
#[derive(Clone, Debug)]
pub struct FileStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: Arc<Directory>,
    table: Arc<Table>,
    waiters: Arc<Waiters>,
}

impl FileStore {
    /// Returns the file that locks `key`, for `flock(1)` and the like. The file need not exist.
    pub fn lock_file(&self, key: &Key) -> PathBuf {
        self.0.directory.lock_file(key)
    }

    /// Returns a descriptor of the lock that `owner` holds, or `None` if it holds none.
    ///
    /// The lock is held while this descriptor is open, even past the end of this process: the kernel
    /// frees a lock when its last descriptor is closed. It is closed on `exec` unless the caller
    /// passes it on. A release by this store frees the lock for all descriptors.
    pub fn descriptor(&self, owner: Owner) -> Option<OwnedFd> {
        let held = self.0.table.held_by(owner)?;
        let file = held.lock.share().ok()?;
        Some(file.into())
    }

    pub(crate) fn new(directory: Directory, waiters: Waiters) -> Self {
        Self(Arc::new(Inner {
            directory: Arc::new(directory),
            table: Arc::default(),
            waiters: Arc::new(waiters),
        }))
    }

    #[cfg(test)]
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.0.waiters
    }

    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.0.directory
    }

    /// Adds to an error where it happened.
    pub(crate) fn at(&self, key: &Key) -> impl FnOnce(Error) -> Error {
        let (key, store) = (key.clone(), self.to_string());
        move |error| error.with_key(&key).with_store(store)
    }
}

impl fmt::Display for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file:{}", self.0.directory.path().display())
    }
}

impl Store for FileStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Kernel, Expiry::WithProcess, Order::Unordered)
            .with_shared()
            .with_permits()
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(FileSession {
            store: self.clone(),
            context,
        })
    }
}

impl From<FileStore> for Arc<dyn Store> {
    fn from(store: FileStore) -> Self {
        Arc::new(store)
    }
}
