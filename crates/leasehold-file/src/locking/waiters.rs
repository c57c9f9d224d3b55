//! The waiters for locks, between their attempts.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use leasehold::Mode;
use leasehold::clock::within;
use leasehold::env::Env;
use leasehold::store::locked;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::kernel::listener::{Listener, Watch};
use crate::kernel::lock_file;
use crate::locking::writer_yield::WriterYield;

/// A lock file that a waiter keeps open from one attempt to the next. If it closed the file after
/// each attempt, the close would wake all other waiters, and theirs would wake it.
#[derive(Debug)]
pub(crate) struct KeptOpen {
    pub(crate) file: File,
    /// `None` without a waiter, or if the kernel does not notify.
    pub(crate) watch: Option<Watch>,
    /// How long the waiter yields to writers, unless it is a writer.
    pub(crate) writer_yield: WriterYield,
    /// Whether the file announces this waiting writer to requests that come to share the lock.
    pub(crate) is_announced: bool,
}

/// The waiters of one store.
#[derive(Debug)]
pub(crate) struct Waiters {
    room: Arc<Semaphore>,
    /// Only for writers, which need their file to announce that they wait.
    room_of_writers: Arc<Semaphore>,
    /// Made by the first wait.
    listener: Mutex<Option<Arc<Listener>>>,
    start: fn() -> io::Result<Listener>,
    warned: Once,
}

impl KeptOpen {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            watch: None,
            writer_yield: WriterYield::default(),
            is_announced: false,
        }
    }

    /// Whether the lock at `path` is still the one on this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        // If the lookup fails, the file is opened again, which reports the reason.
        lock_file::is_under_its_name(&self.file, path).unwrap_or(false)
    }
}

impl Waiters {
    /// Creates the waiters of a file system where the kernel notifies them.
    pub(crate) fn notified() -> Self {
        Self::with(Listener::start)
    }

    /// Creates the waiters of a file system that other machines may use too: the kernel only reports
    /// closes on this machine.
    pub(crate) fn polling() -> Self {
        Self::with(|| {
            let reason = "the file system may not be local";
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        })
    }

    /// Creates the waiters of a system whose kernel never notifies, which is nothing to warn of.
    pub(crate) fn never_notified() -> Self {
        let waiters = Self::polling();
        waiters.warned.call_once(|| ());
        waiters
    }

    fn with(start: fn() -> io::Result<Listener>) -> Self {
        Self {
            room: Arc::new(Semaphore::new(ROOM)),
            room_of_writers: Arc::new(Semaphore::new(ROOM_OF_WRITERS)),
            listener: Mutex::default(),
            start,
            warned: Once::new(),
        }
    }

    /// Watches the file at `path`, if the kernel can.
    pub(crate) fn watch(&self, path: &Path) -> Option<Watch> {
        let watched = self.listener().and_then(|it| it.watch(path));
        watched.map_err(|error| self.warn_once(&error)).ok()
    }

    /// Returns the right of a waiter to keep a file open until it drops the right. `None` if there are too many: a
    /// process may only have a limited number of files open, and the other waiters can take turns without it.
    pub(crate) fn room(&self, mode: Mode) -> Option<OwnedSemaphorePermit> {
        let of = |room: &Arc<Semaphore>| Arc::clone(room).try_acquire_owned().ok();
        let is_writer = mode == Mode::Exclusive;
        of(&self.room).or_else(|| of(&self.room_of_writers).filter(|_| is_writer))
    }

    /// Resolves when another attempt of a waiter is worth making, which may keep a file open.
    pub(crate) async fn wait(&self, open: &mut Option<KeptOpen>, env: &Env) {
        let clock = &*env.clock;
        let Some(watch) = open.as_mut().and_then(|open| open.watch.as_mut()) else {
            return env.poll_pause().await;
        };
        let floor = env.random_span(POLL_FLOOR[0], POLL_FLOOR[1]);
        let until = watch.retry_timer.without_notification(clock.now(), floor);
        let mut listening = watch.listening();
        match within(clock, until, listening.changed()).await {
            None => {}
            Some(Ok(())) => {
                let at = watch.retry_timer.notified(clock.now());
                clock.sleep_until(at).await;
            }
            Some(Err(error)) => {
                self.warn_once(&error);
                env.poll_pause().await;
            }
        }
    }

    fn listener(&self) -> io::Result<Arc<Listener>> {
        let mut listener = locked(&self.listener);
        if let Some(listener) = &*listener {
            return Ok(listener.clone());
        }
        let started = Arc::new((self.start)()?);
        Ok(listener.insert(started).clone())
    }

    fn warn_once(&self, error: &io::Error) {
        self.warned.call_once(|| {
            tracing::warn!(
                %error,
                "the kernel does not tell when a lock file is closed: waiters ask at random instead"
            );
        });
    }
}

/// How many files the waiters of a process keep open. With those of [`ROOM_OF_WRITERS`], this is a quarter of the files
/// that a process may usually have open.
const ROOM: usize = 192;

const ROOM_OF_WRITERS: usize = 64;

/// How long a waiter without notifications waits until it tries all the same.
const POLL_FLOOR: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

#[cfg(test)]
mod tests {
    use leasehold::clock::WallTime;
    use leasehold::env::SystemEntropy;
    use std::task::Poll;

    use leasehold::Key;
    use leasehold::store::{
        ClientId, LockRequest, Owner, Progress, Session, SessionContext, Store as _,
    };

    use super::*;
    use crate::directory::{Directory, Rules};
    use crate::store::FileStore;

    fn waiter() -> LockRequest {
        let id = ClientId::random(&SystemEntropy);
        let client = Env::default().this_process(None);
        let owner = || Owner::random(id, &SystemEntropy);
        let key = Key::new("deploy").unwrap();
        let (ttl, proposal) = (Duration::from_secs(1), WallTime::from_micros(1));
        LockRequest::new(key, owner(), ttl, proposal, Arc::new(client)).waiting(true)
    }

    fn store(dir: &Path, waiters: Waiters) -> FileStore {
        let directory = Directory::prepare(dir, Rules::default()).unwrap();
        FileStore::new(directory, waiters)
    }

    fn session(store: &FileStore) -> Arc<dyn Session> {
        let client = Arc::new(Env::default().this_process(None));
        store.open(SessionContext::new(
            Env::default(),
            client,
            tokio::runtime::Handle::current(),
        ))
    }

    /// Waits while `holder` has the lock. `seen` sees the wait after it was refused.
    async fn waits(session: &Arc<dyn Session>, holder: LockRequest, seen: impl FnOnce()) {
        let (holder, waiter) = (Arc::new(holder), Arc::new(waiter()));
        let progress = Progress::new();
        session.acquire(&holder, &progress).await.unwrap();
        let mut waiting = session.acquire(&waiter, &progress);
        std::future::poll_fn(|context| match waiting.as_mut().poll(context) {
            Poll::Ready(answer) => panic!("beside its holder: {answer:?}"),
            Poll::Pending if progress.last().is_some() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        })
        .await;
        seen();
        session.release(&holder).await.unwrap();
        waiting.await.unwrap();
        session.release(&waiter).await.unwrap();
    }

    fn room(waiters: &Waiters) -> usize {
        waiters.room.available_permits()
    }

    #[tokio::test]
    async fn waiters_poll_when_inotify_is_exhausted() {
        let none_left = || Err(nix::errno::Errno::EMFILE.into());
        for waiters in [Waiters::with(none_left), Waiters::polling()] {
            let dir = tempfile::tempdir().unwrap();
            let store = store(dir.path(), waiters);
            let session = session(&store);
            for _ in 0..2 {
                waits(&session, waiter(), || {
                    assert!(store.waiters().warned.is_completed());
                    // Its file stays open all the same: a close could notify others.
                    assert_eq!(room(store.waiters()), ROOM - 1);
                })
                .await;
                assert_eq!(room(store.waiters()), ROOM);
            }
        }
    }

    #[test]
    fn writers_have_room_of_their_own() {
        let waiters = Waiters::notified();
        let rooms =
            |mode, count| -> Vec<_> { (0..count).map_while(|_| waiters.room(mode)).collect() };
        let readers = rooms(Mode::Shared, ROOM);
        assert_eq!(readers.len(), ROOM);
        assert!(waiters.room(Mode::Shared).is_none());
        let writers = rooms(Mode::Exclusive, ROOM);
        assert_eq!(writers.len(), ROOM_OF_WRITERS);
        drop(readers);
        assert!(waiters.room(Mode::Shared).is_some());
    }

    #[tokio::test]
    async fn waiter_without_room_gets_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), Waiters::notified());
        let most = u32::try_from(ROOM).unwrap();
        let _room = store.waiters().room.try_acquire_many(most).unwrap();
        let writers = u32::try_from(ROOM_OF_WRITERS).unwrap();
        let _others = store
            .waiters()
            .room_of_writers
            .try_acquire_many(writers)
            .unwrap();
        waits(&session(&store), waiter(), || {}).await;
    }
}
