//! Those who wait for a lock, between their attempts.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::clock::within;

use crate::listener::{Listener, Watch};
use crate::lock_file;
use crate::table::ClaimId;

/// A lock file that a waiter keeps open from one attempt to the next. Were it closed after each,
/// the close would wake all other waiters, and theirs would wake it.
#[derive(Debug)]
pub(crate) struct KeptOpen {
    pub(crate) file: File,
    /// `None` if nobody waits, or the kernel does not tell.
    pub(crate) watch: Option<Watch>,
}

/// The waiters of one store.
#[derive(Debug)]
pub(crate) struct Waits {
    kept: Mutex<HashMap<ClaimId, KeptOpen>>,
    /// Made when somebody waits for the first time.
    listener: Mutex<Option<Arc<Listener>>>,
    start: fn() -> io::Result<Listener>,
    complaint: Once,
}

impl KeptOpen {
    /// Whether the lock at `path` is still the one on this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        // Where it cannot be looked up it is opened again, which says why.
        lock_file::is_under_its_name(&self.file, path).unwrap_or(false)
    }
}

impl Waits {
    /// Waiters that are told by the kernel.
    pub(crate) fn told() -> Self {
        Self::with(Listener::start)
    }

    /// Waiters on a file system that other machines may have too: the kernel knows only of those
    /// who close a file here.
    pub(crate) fn untold() -> Self {
        Self::with(|| {
            let reason = "the file system may not be local";
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        })
    }

    fn with(start: fn() -> io::Result<Listener>) -> Self {
        Self {
            kept: Mutex::default(),
            listener: Mutex::default(),
            start,
            complaint: Once::new(),
        }
    }

    /// Watches the file at `path`, if the kernel does that.
    pub(crate) fn watch(&self, path: &Path) -> Option<Watch> {
        let watched = self.listener().and_then(|it| it.watch(path));
        watched.map_err(|error| self.complain(&error)).ok()
    }

    /// What `waiter` keeps open, for its next attempt or to be closed.
    pub(crate) fn take(&self, waiter: &ClaimId) -> Option<KeptOpen> {
        locked(&self.kept).remove(waiter)
    }

    /// Keeps a file open for `waiter`. Beyond [`MOST`] waiters it is closed instead: a process may
    /// have only so many files open, and the others do not need it to take turns.
    pub(crate) fn keep(&self, waiter: ClaimId, open: KeptOpen) {
        let mut kept = locked(&self.kept);
        if kept.len() < MOST {
            kept.insert(waiter, open);
        }
    }

    /// Resolves when another attempt of `waiter` is worth making.
    pub(crate) async fn wait(&self, waiter: &ClaimId, ambient: &Ambient) {
        let clock = &*ambient.clock;
        let floor = ambient.random_span(FLOOR[0], FLOOR[1]);
        let listening = self.watch_of(waiter, |watch| {
            (watch.listening(), watch.rhythm.unheard(clock.now(), floor))
        });
        let Some((mut listening, until)) = listening else {
            return ambient.poll_pause().await;
        };
        match within(clock, until, listening.heard()).await {
            None => {}
            Some(Ok(())) => {
                let heard = |watch: &mut Watch| watch.rhythm.heard(clock.now());
                if let Some(at) = self.watch_of(waiter, heard) {
                    clock.sleep_until(at).await;
                }
            }
            Some(Err(error)) => {
                self.complain(&error);
                ambient.poll_pause().await;
            }
        }
    }

    fn watch_of<T>(&self, waiter: &ClaimId, look: impl FnOnce(&mut Watch) -> T) -> Option<T> {
        let mut kept = locked(&self.kept);
        kept.get_mut(waiter)?.watch.as_mut().map(look)
    }

    fn listener(&self) -> io::Result<Arc<Listener>> {
        let mut listener = locked(&self.listener);
        if let Some(listener) = &*listener {
            return Ok(listener.clone());
        }
        let started = Arc::new((self.start)()?);
        Ok(listener.insert(started).clone())
    }

    fn complain(&self, error: &io::Error) {
        self.complaint.call_once(|| {
            tracing::warn!(
                %error,
                "the kernel does not tell when a lock file is closed: waiters ask at random instead"
            );
        });
    }
}

/// Each is whole at every moment, so that a panic elsewhere cannot have broken it.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A quarter of the files that a process may usually have open.
const MOST: usize = 256;

/// How long a waiter that hears nothing waits until it tries all the same.
const FLOOR: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
