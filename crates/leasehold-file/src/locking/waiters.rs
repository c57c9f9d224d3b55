//! The waiters for locks, between their attempts.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use leasehold::clock::within;
use leasehold::env::Env;

use crate::kernel::listener::{Listener, Watch};
use crate::kernel::lock_file;
use crate::locking::table::ClaimId;
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
    /// Whether the file announces this waiting writer to claims that come to share the lock.
    pub(crate) is_announced: bool,
}

/// The waiters of one store.
#[derive(Debug)]
pub(crate) struct Waiters {
    kept: Mutex<HashMap<ClaimId, KeptOpen>>,
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

    fn with(start: fn() -> io::Result<Listener>) -> Self {
        Self {
            kept: Mutex::default(),
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

    /// Returns what `waiter` keeps open, to use in its next attempt or to close.
    pub(crate) fn take(&self, waiter: &ClaimId) -> Option<KeptOpen> {
        locked(&self.kept).remove(waiter)
    }

    /// Keeps a file open for `waiter`. Beyond [`KEPT_FILES_MAX`] waiters, it is closed instead: a process may
    /// only have a limited number of files open, and the other waiters can take turns without it. A
    /// writer needs its file to announce that it waits, so its file takes the place of another's.
    pub(crate) fn keep(&self, waiter: ClaimId, open: KeptOpen) {
        let mut kept = locked(&self.kept);
        if kept.len() >= KEPT_FILES_MAX {
            let mut others = kept.iter().filter(|(_, it)| !it.is_announced);
            let other = others.next().map(|(other, _)| other.clone());
            match other.filter(|_| open.is_announced) {
                Some(other) => drop(kept.remove(&other)),
                None => return,
            }
        }
        kept.insert(waiter, open);
    }

    /// Resolves when another attempt of `waiter` is worth making.
    pub(crate) async fn wait(&self, waiter: &ClaimId, env: &Env) {
        let clock = &*env.clock;
        let floor = env.random_span(POLL_FLOOR[0], POLL_FLOOR[1]);
        let listening = self.watch_of(waiter, |watch| {
            (
                watch.listening(),
                watch.retry_timer.without_notification(clock.now(), floor),
            )
        });
        let Some((mut listening, until)) = listening else {
            return env.poll_pause().await;
        };
        match within(clock, until, listening.changed()).await {
            None => {}
            Some(Ok(())) => {
                let notified = |watch: &mut Watch| watch.retry_timer.notified(clock.now());
                if let Some(at) = self.watch_of(waiter, notified) {
                    clock.sleep_until(at).await;
                }
            }
            Some(Err(error)) => {
                self.warn_once(&error);
                env.poll_pause().await;
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

    fn warn_once(&self, error: &io::Error) {
        self.warned.call_once(|| {
            tracing::warn!(
                %error,
                "the kernel does not tell when a lock file is closed: waiters ask at random instead"
            );
        });
    }
}

/// Each value is whole at every moment, so a panic elsewhere cannot have broken it.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A quarter of the files that a process may usually have open.
const KEPT_FILES_MAX: usize = 256;

/// How long a waiter without notifications waits until it tries all the same.
const POLL_FLOOR: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

#[cfg(test)]
mod tests {
    use leasehold::clock::WallTime;
    use leasehold::env::SystemEntropy;
    use leasehold::store::{
        Attempt, Claim, ClientId, ClientInfo, Owner, Session, SessionContext, Store as _, Wait,
    };
    use leasehold::{Key, Mode};

    use super::*;
    use crate::directory::{Directory, Rules};
    use crate::store::FileStore;

    fn waiter() -> Claim {
        let id = ClientId::random(&SystemEntropy);
        let client = ClientInfo::of_this_process(&Env::default(), None);
        let owner = || Owner::random(id, &SystemEntropy);
        let key = Key::new("deploy").unwrap();
        let (ttl, proposal) = (Duration::from_secs(1), WallTime::from_micros(1));
        Claim::new(key, owner(), ttl, proposal, Arc::new(client)).with_wait(Wait::Queued)
    }

    fn store(dir: &Path, waits: Waiters) -> FileStore {
        let directory = Directory::prepare(dir, Rules::default()).unwrap();
        FileStore::new(directory, waits)
    }

    fn session(store: &FileStore) -> Arc<dyn Session> {
        let client = Arc::new(ClientInfo::of_this_process(&Env::default(), None));
        store.open(SessionContext::new(
            Env::default(),
            client,
            tokio::runtime::Handle::current(),
        ))
    }

    /// Waiters in rounds of [`Session::wait`]. After three of them, `holder` releases.
    async fn takes_turns(session: &dyn Session, holder: &Claim, waiter: &Claim) {
        for tries in 0.. {
            if tries == 3 {
                session.release(holder).await.unwrap();
            }
            match session.acquire(waiter).await.unwrap() {
                Attempt::Granted(_) if tries >= 3 => break,
                Attempt::Busy(_) => session.wait(waiter).await,
                granted @ Attempt::Granted(_) => panic!("beside its holder: {granted:?}"),
            }
        }
        session.leave(waiter);
        session.flush().await;
        session.release(waiter).await.unwrap();
    }

    #[tokio::test]
    async fn waiters_poll_when_inotify_is_exhausted() {
        let none_left = || Err(nix::errno::Errno::EMFILE.into());
        for waits in [Waiters::with(none_left), Waiters::polling()] {
            let dir = tempfile::tempdir().unwrap();
            let store = store(dir.path(), waits);
            let session = session(&store);
            for _ in 0..2 {
                let (holder, waiter) = (waiter(), waiter());
                assert!(matches!(
                    session.acquire(&holder).await.unwrap(),
                    Attempt::Granted(_)
                ));
                assert!(matches!(
                    session.acquire(&waiter).await.unwrap(),
                    Attempt::Busy(_)
                ));
                assert!(store.waits().warned.is_completed());
                // Its file stays open all the same: a close could notify others.
                let kept = |waits: &Waiters| locked(&waits.kept).len();
                assert_eq!(kept(store.waits()), 1);
                takes_turns(&*session, &holder, &waiter).await;
                assert_eq!(kept(store.waits()), 0);
            }
        }
    }

    #[tokio::test]
    async fn notifications_resume_when_inotify_has_room() {
        static FULL: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);
        let dir = tempfile::tempdir().unwrap();
        let waits = Waiters::with(|| {
            if FULL.load(std::sync::atomic::Ordering::SeqCst) {
                return Err(nix::errno::Errno::EMFILE.into());
            }
            Listener::start()
        });
        let (store, holder, waiter) = (store(dir.path(), waits), waiter(), waiter());
        let session = session(&store);
        session.acquire(&holder).await.unwrap();
        let id = ClaimId::of(&waiter);
        session.acquire(&waiter).await.unwrap();
        assert!(store.waits().watch_of(&id, |_| ()).is_none());
        FULL.store(false, std::sync::atomic::Ordering::SeqCst);
        session.acquire(&waiter).await.unwrap();
        assert!(store.waits().watch_of(&id, |_| ()).is_some());
        takes_turns(&*session, &holder, &waiter).await;
    }

    #[tokio::test]
    async fn waiters_beyond_the_file_limit_poll() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), Waiters::notified());
        let session = session(&store);
        let holder = waiter();
        session.acquire(&holder).await.unwrap();
        let waiters: Vec<_> = (0..=KEPT_FILES_MAX).map(|_| waiter()).collect();
        for waiter in &waiters {
            assert!(matches!(
                session.acquire(waiter).await.unwrap(),
                Attempt::Busy(_)
            ));
        }
        assert_eq!(locked(&store.waits().kept).len(), KEPT_FILES_MAX);
        // These waiting writers keep readers out. A reader that they keep out makes room for another
        // writer.
        let readers = [
            waiter().with_mode(Mode::Shared),
            waiter().with_mode(Mode::Shared),
        ];
        let is_kept = |claim: &Claim| {
            let id = ClaimId::of(claim);
            locked(&store.waits().kept).contains_key(&id)
        };
        assert!(
            waiters[..KEPT_FILES_MAX].iter().all(is_kept) && !is_kept(&waiters[KEPT_FILES_MAX])
        );
        session.acquire(&readers[0]).await.unwrap();
        assert!(!is_kept(&readers[0]));
        session.leave(&waiters[0]);
        session.flush().await;
        for reader in &readers {
            session.acquire(reader).await.unwrap();
        }
        assert!(is_kept(&readers[0]) && !is_kept(&readers[1]));
        session.acquire(&waiters[KEPT_FILES_MAX]).await.unwrap();
        assert!(is_kept(&waiters[KEPT_FILES_MAX]) && !is_kept(&readers[0]));
        takes_turns(&*session, &holder, &waiters[KEPT_FILES_MAX]).await;
        for waiter in waiters.iter().chain(&readers) {
            session.leave(waiter);
            session.flush().await;
        }
        assert!(locked(&store.waits().kept).is_empty());
    }
}
