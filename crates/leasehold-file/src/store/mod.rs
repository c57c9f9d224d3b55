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
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::look::Owner;
use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Session, SessionContext, Store, exact_span,
};
use leasehold::{Error, ErrorKind, Key};

use crate::directory::Directory;
use crate::failure::failed;
use crate::locking::cleanup::{self, Cleanup};
use crate::locking::notifications::NotificationSource;
use crate::locking::table::Table;

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
pub struct FileStore(Arc<FileStoreInner>);

#[derive(Debug)]
struct FileStoreInner {
    directory: Arc<Directory>,
    table: Arc<Table>,
    source: NotificationSource,
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

    /// Removes the lock files that were not used for `unused_for`, which is at least an hour. With `dry`, only counts
    /// them.
    ///
    /// A file stays if its lock is held, or if its fences are ahead of the clock. Fences keep growing without the file,
    /// because each begins at the time of its request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput) if `unused_for` is too short, or a directory that
    /// cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// # use leasehold_file::FileStore;
    /// # use std::time::Duration;
    /// # let dir = tempfile::tempdir()?;
    /// let store = FileStore::open(dir.path().join("locks"))?;
    /// let week = Duration::from_secs(7 * 24 * 3600);
    /// assert_eq!(store.remove_unused(week, false)?.removed, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_unused(&self, unused_for: Duration, dry: bool) -> Result<Cleanup, Error> {
        if unused_for < UNUSED_MIN {
            let text = format!(
                "lock files that were unused for {} may still be needed; the minimum is {}",
                exact_span(unused_for),
                exact_span(UNUSED_MIN)
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let micros = u64::try_from(unused_for.as_micros()).unwrap_or(u64::MAX);
        let now = SystemClock.wall().as_micros();
        let unused_since = WallTime::from_micros(now.saturating_sub(micros));
        cleanup::remove_unused(&self.0.directory, unused_since, dry).map_err(|error| {
            let path = self.0.directory.path();
            failed("remove unused lock files in", path, error).with_store(self.to_string())
        })
    }

    pub(crate) fn new(directory: Directory, source: NotificationSource) -> Self {
        Self(Arc::new(FileStoreInner {
            directory: Arc::new(directory),
            table: Arc::default(),
            source,
        }))
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

/// A request that is under way may have an older proposal than the fence in a file, but not by this much.
const UNUSED_MIN: Duration = Duration::from_secs(3600);

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
        Arc::new(FileSession::new(self.clone(), context))
    }
}

impl From<FileStore> for Arc<dyn Store> {
    fn from(store: FileStore) -> Self {
        Arc::new(store)
    }
}
