//! The directory of lock files as a store.

mod inspection;
mod options;
mod records;
mod renewal;

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leasehold::env::Env;
use leasehold::store::background::{blocking, spawn};
use leasehold::store::{
    Attempt, BoxFuture, Claim, Exclusion, Expiry, Grant, Held, Inspection, LeaseTerms, Order,
    Owner, Records, Release, Renewal, Store, Term, Wait,
};
use leasehold::{Error, ErrorKind, Guarantees, Key};

use tokio_util::task::TaskTracker;

use crate::directory::Directory;
use crate::locking::attempt::{self, AttemptProgress, Stage};
use crate::locking::table::{ClaimId, Table};
use crate::locking::waiters::Waiters;

pub use options::FileStoreOptions;

/// Locks between the processes of one machine: a directory of lock files, each held by `flock(2)`.
///
/// A lock is free as soon as its holder ends, however it ends; it never expires before. The kernel
/// then notifies all waiters, and the first one to try wins. They are served in no order, because a
/// waiter could not leave the kernel's own queue (see [the crate](crate#waiting)). Claims that share
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
    waits: Arc<Waiters>,
    /// The waiters that are about to leave.
    leaving: TaskTracker,
    env: Env,
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

    pub(crate) fn new(directory: Directory, waits: Waiters, env: Env) -> Self {
        let leaving = TaskTracker::new();
        // It only counts; once closed, it can be waited for whenever it is empty.
        leaving.close();
        Self(Arc::new(Inner {
            directory: Arc::new(directory),
            table: Arc::default(),
            waits: Arc::new(waits),
            leaving,
            env,
        }))
    }

    #[cfg(test)]
    pub(crate) fn waits(&self) -> &Waiters {
        &self.0.waits
    }

    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.0.directory
    }

    pub(crate) fn env(&self) -> &Env {
        &self.0.env
    }

    /// Adds to an error where it happened.
    pub(crate) fn at(&self, key: &Key) -> impl FnOnce(Error) -> Error {
        let (key, store) = (key.clone(), self.to_string());
        move |error| error.with_key(&key).with_store(store)
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, Error> {
        let Inner {
            directory,
            table,
            waits,
            env,
            ..
        } = &*self.0;
        let (id, is_wait) = (ClaimId::of(claim), claim.wait == Wait::Queued);
        let mut guard = table.lock_claim(&id).await;
        if let Some(fence) = self.still_held(&id, claim).await? {
            return Ok(Attempt::Granted(Grant::new(
                fence,
                Term::endless(env.clock.now()),
            )));
        }
        let kept = is_wait.then(|| waits.take(&id)).flatten();
        let give_up = env.clock.now() + PATIENCE_WITH_OTHERS;
        let mut stage = Stage::Try(kept);
        loop {
            let (directory, wanted) = (directory.clone(), claim.clone());
            let waits = is_wait.then(|| waits.clone());
            let now = env.clock.now();
            let work = move || {
                let watch = |path: &Path| waits.as_ref()?.watch(path);
                attempt::go_on(&directory, &wanted, stage, now, watch)
            };
            // If this future is dropped, the work goes on, and its result is dropped, which frees
            // the lock; only then, by the order within the pair, does a release get its turn.
            let (step, back) = blocking(move || (work(), guard)).await?;
            guard = back;
            match step? {
                AttemptProgress::Busy(busy, open) => {
                    if is_wait {
                        self.0.waits.keep(id, open);
                    }
                    return Ok(Attempt::Busy(busy));
                }
                AttemptProgress::Granted(lock) => {
                    let fence = lock.fence;
                    table.keep(id, lock);
                    return Ok(Attempt::Granted(Grant::new(
                        fence,
                        Term::endless(env.clock.now()),
                    )));
                }
                AttemptProgress::Later(next) if env.clock.now() < give_up => stage = next,
                AttemptProgress::Later(_) => {
                    return Err(others_are_stuck(&self.lock_file(&claim.key)));
                }
            }
            let [least, most] = PAUSE_FOR_OTHERS;
            let soon = env.clock.now() + env.random_span(least, most);
            env.clock.sleep_until(soon).await;
        }
    }

    /// The fence of a claim that holds already: a resend of what was granted.
    async fn still_held(
        &self,
        id: &ClaimId,
        claim: &Claim,
    ) -> Result<Option<leasehold::Fence>, Error> {
        let Some(held) = self.0.table.held(id) else {
            return Ok(None);
        };
        if held.mode != claim.mode {
            let message = format!(
                "this attempt holds the lock in {} mode: {} mode needs an attempt of its own",
                held.mode, claim.mode
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let fence = held.fence;
        if blocking(move || held.still_excludes()).await?? {
            return Ok(Some(fence));
        }
        self.0.table.remove(id);
        Ok(None)
    }

    async fn free(&self, claim: &Claim) -> Result<Release, Error> {
        let table = &self.0.table;
        let id = ClaimId::of(claim);
        let guard = table.lock_claim(&id).await;
        let Some(held) = table.remove(&id) else {
            return Ok(Release::WasLost);
        };
        let work = move || {
            let existed = held.still_excludes();
            held.lock.free();
            (existed, guard)
        };
        let (existed, _turn) = blocking(work).await?;
        Ok(match existed {
            Ok(false) => Release::WasLost,
            // It is free in any case, also where the name could not be looked up.
            Ok(true) | Err(_) => Release::Released,
        })
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

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move { self.attempt(claim).await.map_err(self.at(&claim.key)) })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(renewal::renew(
            &self.0.table,
            leases,
            self.0.env.clock.now(),
        ))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move { self.free(claim).await.map_err(self.at(&claim.key)) })
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        // A release is over when it is answered.
        Box::pin(self.0.leaving.wait())
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Inner { waits, env, .. } = &*self.0;
            match claim.wait {
                Wait::Queued => waits.wait(&ClaimId::of(claim), env).await,
                Wait::None | Wait::Barging => env.poll_pause().await,
            }
        })
    }

    fn leave(&self, claim: &Claim) {
        if claim.wait != Wait::Queued {
            return;
        }
        let waiter = ClaimId::of(claim);
        let (table, waits) = (self.0.table.clone(), self.0.waits.clone());
        spawn(self.0.leaving.track_future(async move {
            // An attempt that was broken off may still be about to keep something.
            let guard = table.lock_claim(&waiter).await;
            if let Some(kept) = waits.take(&waiter) {
                let _ = blocking(move || (drop(kept), guard)).await;
            }
        }));
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}

impl From<FileStore> for Arc<dyn Store> {
    fn from(store: FileStore) -> Self {
        Arc::new(store)
    }
}

fn others_are_stuck(path: &Path) -> Error {
    let message = format!(
        "another shared holder has been writing its fence to {} for {PATIENCE_WITH_OTHERS:?}: it \
         may be stopped",
        path.display()
    );
    Error::new(ErrorKind::Io, message)
}

/// About as long as a disk takes to write one sector through.
const PAUSE_FOR_OTHERS: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(2)];

const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(30);
