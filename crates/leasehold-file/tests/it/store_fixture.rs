use std::future::poll_fn;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime, within};
use leasehold::env::{Env, SystemEntropy};
use leasehold::look::{ClientInfo, Holder, LockListing, Owner, Pattern};
use leasehold::store::{
    AcquireError, BoxFuture, Grant, Held, LockRequest, Permits, Progress, ReleaseReply, RenewReply,
    Session, SessionContext, Store,
};
use leasehold::{Error, Fence, Key, Mode};
use leasehold_file::FileStore;
use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};

/// A store, and a session of it.
#[derive(Clone, Debug)]
pub(crate) struct OpenStore {
    pub(crate) files: FileStore,
    session: Arc<dyn Session>,
    sleeps: Arc<Sleeps>,
}

/// How often a session slept.
#[derive(Debug, Default)]
struct Sleeps {
    all: AtomicUsize,
    /// As long as a queue sleeps that waits for a notification.
    long: AtomicUsize,
}

#[derive(Debug)]
struct CountingClock {
    clock: Arc<dyn Clock>,
    sleeps: Arc<Sleeps>,
}

impl Clock for CountingClock {
    fn now(&self) -> BootInstant {
        self.clock.now()
    }

    fn wall(&self) -> WallTime {
        self.clock.wall()
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        self.sleeps.all.fetch_add(1, Ordering::SeqCst);
        if deadline.since(self.now()) > Duration::from_millis(500) {
            self.sleeps.long.fetch_add(1, Ordering::SeqCst);
        }
        self.clock.sleep_until(deadline)
    }

    fn was_paused(&self, span: Duration) {
        self.clock.was_paused(span);
    }
}

impl OpenStore {
    /// Opens the store in `dir`.
    pub(crate) fn at(dir: impl AsRef<Path>) -> Self {
        Self::of(FileStore::open(dir).unwrap(), Env::default())
    }

    pub(crate) fn of(files: FileStore, env: Env) -> Self {
        Self::on(files, env, runtime())
    }

    /// Opens a session whose tasks run on `runtime`.
    fn on(files: FileStore, env: Env, runtime: Handle) -> Self {
        let sleeps = Arc::<Sleeps>::default();
        let clock = CountingClock {
            clock: env.clock,
            sleeps: Arc::clone(&sleeps),
        };
        let env = Env {
            clock: Arc::new(clock),
            ..env
        };
        let session = Store::open(&files, SessionContext::new(env, client(), runtime));
        Self {
            files,
            session,
            sleeps,
        }
    }

    /// Returns how often the session slept.
    pub(crate) fn sleeps(&self) -> usize {
        self.sleeps.all.load(Ordering::SeqCst)
    }

    /// Returns how often a queue of the session began to wait for a notification.
    pub(crate) fn long_sleeps(&self) -> usize {
        self.sleeps.long.load(Ordering::SeqCst)
    }

    /// Asks for the lock, or waits for it.
    pub(crate) fn acquire<'a>(
        &'a self,
        request: &LockRequest,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        let request = Arc::new(request.clone());
        Box::pin(async move { self.session.acquire(&request, &Progress::new()).await })
    }

    /// The same, with reports to `progress`.
    pub(crate) async fn acquire_with(
        &self,
        request: &LockRequest,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        self.session
            .acquire(&Arc::new(request.clone()), progress)
            .await
    }

    pub(crate) async fn release(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        self.session.release(&Arc::new(request.clone())).await
    }

    pub(crate) async fn holders(&self, key: &Key) -> Result<Vec<Holder>, Error> {
        self.inspection().unwrap().holders(key).await
    }

    pub(crate) async fn list_locks(
        &self,
        pattern: &Pattern,
        limit: usize,
    ) -> Result<LockListing, Error> {
        self.inspection().unwrap().list_locks(pattern, limit).await
    }
}

impl From<OpenStore> for Arc<dyn Store> {
    fn from(open: OpenStore) -> Self {
        open.files.into()
    }
}

impl Deref for OpenStore {
    type Target = dyn Session;

    fn deref(&self) -> &Self::Target {
        &*self.session
    }
}

/// A wait that was refused, in a client that does nothing until it goes on, as if its process were stopped.
pub(crate) struct StoppedWait {
    request: LockRequest,
    store: OpenStore,
    waiting: Option<BoxFuture<'static, Result<Grant, AcquireError>>>,
    runtime: Option<Runtime>,
}

impl StoppedWait {
    pub(crate) async fn begin(store: &OpenStore, request: &LockRequest) -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let store = OpenStore::on(
            store.files.clone(),
            Env::default(),
            runtime.handle().clone(),
        );
        let request = queued(request);
        let (asked, wanted) = (store.clone(), request.clone());
        let progress = Arc::new(Progress::new());
        let seen = Arc::clone(&progress);
        let mut waiting: BoxFuture<'static, _> =
            Box::pin(async move { asked.acquire_with(&wanted, &seen).await });
        let begin = move || {
            runtime.block_on(poll_fn(|context| match waiting.as_mut().poll(context) {
                Poll::Ready(answer) => panic!("not refused: {answer:?}"),
                Poll::Pending if progress.last().is_some() => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            }));
            (waiting, runtime)
        };
        let (waiting, runtime) = tokio::task::spawn_blocking(begin).await.unwrap();
        Self {
            request,
            store,
            waiting: Some(waiting),
            runtime: Some(runtime),
        }
    }

    /// Waits on until the lock is granted. Returns the request and its fence.
    pub(crate) async fn go_on(mut self) -> (LockRequest, Fence) {
        let waiting = self.waiting.take().unwrap();
        let runtime = self.runtime.take().unwrap();
        let end = SystemClock.now() + TIMEOUT;
        let wait = move || runtime.block_on(within(&SystemClock, end, waiting));
        let granted = tokio::task::spawn_blocking(wait).await.unwrap();
        let grant = granted.expect("an answer").expect("the lock");
        (self.request.clone(), grant.fence)
    }

    /// Ends the wait.
    pub(crate) async fn leave(mut self) {
        self.stop();
        let left = self.store.release(&self.request).await;
        assert_eq!(left.unwrap(), ReleaseReply::WasLost);
    }

    fn stop(&mut self) {
        drop(self.waiting.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for StoppedWait {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A fresh directory with a store in it, and a client of the store.
pub(crate) struct StoreFixture {
    pub(crate) dir: TempDir,
    pub(crate) store: OpenStore,
    client: Arc<ClientInfo>,
}

impl StoreFixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = OpenStore::at(dir.path());
        Self {
            dir,
            store,
            client: client(),
        }
    }

    /// A second store on the same place, as another program would open it.
    pub(crate) fn another_store(&self) -> OpenStore {
        OpenStore::at(self.dir.path())
    }

    pub(crate) fn lock_file(&self, name: &str) -> PathBuf {
        self.store.files.lock_file(&key(name))
    }

    /// An exclusive request whose proposal is `proposal`.
    pub(crate) fn request(&self, name: &str, proposal: u64) -> LockRequest {
        request(&self.client, name, proposal)
    }

    /// A request on the lock "deploy", which most tests use.
    pub(crate) fn wants(&self, mode: Mode) -> LockRequest {
        self.request("deploy", 0).with_mode(mode)
    }

    pub(crate) fn writer(&self) -> LockRequest {
        self.wants(Mode::Exclusive)
    }

    pub(crate) fn reader(&self) -> LockRequest {
        self.wants(Mode::Shared)
    }

    /// Takes the lock, which must be free.
    pub(crate) async fn take(&self, name: &str, proposal: u64) -> (LockRequest, Fence) {
        let request = self.request(name, proposal);
        let fence = self.granted(&request).await;
        (request, fence)
    }

    /// Takes and releases the lock, and returns the fence of the grant.
    pub(crate) async fn pass(&self, name: &str, proposal: u64) -> u64 {
        let (request, fence) = self.take(name, proposal).await;
        self.released(&request).await;
        fence.get()
    }

    pub(crate) async fn granted(&self, request: &LockRequest) -> Fence {
        granted(&self.store, request).await
    }

    pub(crate) async fn busy(&self, request: &LockRequest) {
        busy(&self.store, request).await;
    }

    /// Checks that the request fails, and returns the error.
    pub(crate) async fn refused(&self, request: &LockRequest) -> Error {
        match self.store.acquire(request).await {
            Err(AcquireError::Failed(error)) => error,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) async fn released(&self, request: &LockRequest) {
        released(&self.store, request).await;
    }

    pub(crate) async fn renewal(&self, request: &LockRequest, fence: Fence) -> RenewReply {
        let mut renewals = self.store.renew(&[held(request, fence)]).await;
        assert_eq!(renewals.len(), 1);
        renewals.remove(0)
    }

    /// Returns the holders of the lock "deploy".
    pub(crate) async fn holders(&self) -> Vec<Holder> {
        self.store.holders(&key("deploy")).await.unwrap()
    }

    /// Returns the names of the held locks.
    pub(crate) async fn held_locks(&self) -> Vec<Key> {
        let listing = self.store.list_locks(&Pattern::all(), 1000).await.unwrap();
        listing.locks.into_iter().map(|lock| lock.key).collect()
    }
}

/// The runtime of the caller. Outside of one, the sessions spawn nothing.
fn runtime() -> Handle {
    static IDLE: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    Handle::try_current().unwrap_or_else(|_| IDLE.handle().clone())
}

pub(crate) fn client() -> Arc<ClientInfo> {
    Arc::new(Env::default().this_process(None))
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

/// The mode of a request on one of `count` permits.
pub(crate) fn permit(count: u32) -> Mode {
    Mode::Permit(Permits::new(count).unwrap())
}

pub(crate) fn request(client: &Arc<ClientInfo>, name: &str, proposal: u64) -> LockRequest {
    LockRequest::new(
        key(name),
        Owner::random(client.id, &SystemEntropy),
        Duration::from_secs(30),
        WallTime::from_micros(proposal),
        client.clone(),
    )
}

/// The same request, which waits.
pub(crate) fn queued(request: &LockRequest) -> LockRequest {
    request.clone().waiting(true)
}

pub(crate) fn held(request: &LockRequest, fence: Fence) -> Held {
    Held {
        request: Arc::new(request.clone()),
        fence,
    }
}

pub(crate) async fn granted(store: &OpenStore, request: &LockRequest) -> Fence {
    match store.acquire(request).await {
        Ok(grant) => grant.fence,
        other => panic!("not granted: {other:?}"),
    }
}

pub(crate) async fn busy(store: &OpenStore, request: &LockRequest) {
    let attempt = store.acquire(request).await;
    assert!(matches!(attempt, Err(AcquireError::Busy(_))), "{attempt:?}");
}

pub(crate) async fn released(store: &OpenStore, request: &LockRequest) {
    assert_eq!(
        store.release(request).await.unwrap(),
        ReleaseReply::Released
    );
}

/// Waits until the lock is granted.
pub(crate) async fn wait_for(store: &OpenStore, request: &LockRequest) -> Fence {
    let waiter = queued(request);
    let end = SystemClock.now() + TIMEOUT;
    let granted = within(&SystemClock, end, store.acquire(&waiter)).await;
    granted.expect("an answer").expect("the lock").fence
}

pub(crate) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// Runs `future` in this thread, on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(future)
}

/// The machine may be slow; what has not happened by then never will.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
