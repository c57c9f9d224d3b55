use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::BoxFuture;
use crate::ambient::Ambient;
use crate::attempt::Release;
use crate::background::Background;
use crate::clock::BootInstant;
use crate::error::{Error, ErrorKind};
use crate::guarantees::Guarantees;
use crate::guard::forked;
use crate::holder::{ClientInfo, Holder};
use crate::keeper::{Keeper, Order};
use crate::key::Key;
use crate::lock::Lock;
use crate::owner::ClientId;
use crate::store::Store;
use crate::tenure::Tenure;

/// One process's way to its locks: a store, a thread of its own, and the keeper that renews.
///
/// Cheap to clone; all clones are one client. Make one per store and process and keep it: the
/// thread, the connections and the identity belong to it. Calls work on any executor.
///
/// Dropping the last clone, guards included, waits up to 500 ms for releases under way. A client
/// is of no use in a forked child: there every call answers [`ErrorKind::Forked`].
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("invoices/2026-11").acquire().await?;
/// assert!(locks.lock("invoices/2026-11").try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Client {
    core: Arc<ClientCore>,
}

impl Client {
    /// A client of `store` with a background thread of its own. Nothing is sent to the store yet.
    pub fn new(store: impl Into<Arc<dyn Store>>) -> Self {
        Self::builder(store).build()
    }

    /// A client of `store` with settings of its own.
    pub fn builder(store: impl Into<Arc<dyn Store>>) -> ClientBuilder {
        ClientBuilder {
            store: store.into(),
            ambient: Ambient::default(),
            program: None,
            on_current_runtime: false,
        }
    }

    /// The lock called `name`. A name that breaks a rule is reported when it is acquired.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(Arc::clone(&self.core), Key::new(name))
    }

    /// Who holds `name` right now, as far as the store knows. For people.
    ///
    /// # Errors
    ///
    /// An invalid name, or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn holders(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        let key = Key::new(name)?;
        let store = Arc::clone(&self.core.store);
        self.core
            .run(Box::pin(async move { store.holders(&key).await }))?
            .await?
    }

    /// Up to `limit` names beginning with `prefix` that somebody holds. For people.
    ///
    /// # Errors
    ///
    /// A store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn list(&self, prefix: impl Into<String>, limit: usize) -> Result<Vec<Key>, Error> {
        let prefix = prefix.into();
        let store = Arc::clone(&self.core.store);
        self.core
            .run(Box::pin(async move { store.list(&prefix, limit).await }))?
            .await?
    }

    /// The client's random identity; every owner it draws begins with it.
    pub fn id(&self) -> ClientId {
        self.core.info.id
    }

    /// What the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.core.store.guarantees()
    }

    /// The store in a few words, without credentials.
    pub fn describe(&self) -> String {
        self.core.store.describe()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id())
            .field("store", &self.describe())
            .finish_non_exhaustive()
    }
}

/// Settings of a [`Client`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    store: Arc<dyn Store>,
    ambient: Ambient,
    program: Option<String>,
    on_current_runtime: bool,
}

impl ClientBuilder {
    /// What the client calls itself to people who look at its locks. Default: the name of the
    /// executable.
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = Some(name.into());
        self
    }

    /// Replaces time and chance, for tests and simulations.
    pub fn ambient(mut self, ambient: Ambient) -> Self {
        self.ambient = ambient;
        self
    }

    /// Runs everything on the calling tokio runtime instead of a thread of the client's own: for
    /// tests that move time by hand. A runtime that is busy otherwise then delays renewals.
    pub fn on_current_runtime(mut self) -> Self {
        self.on_current_runtime = true;
        self
    }

    /// Starts the client. A thread that cannot be started is reported by the first call.
    ///
    /// # Panics
    ///
    /// After [`on_current_runtime`](Self::on_current_runtime), outside a tokio runtime.
    pub fn build(self) -> Client {
        let background = if self.on_current_runtime {
            Ok(Background::Borrowed(tokio::runtime::Handle::current()))
        } else {
            Background::start()
        };
        let engine = background.map(|background| {
            let (orders, inbox) = mpsc::unbounded_channel();
            let keeper = Keeper::new(Arc::clone(&self.store), self.ambient.clone(), inbox);
            background.spawn(keeper.run());
            Engine { background, orders }
        });
        let info = Arc::new(ClientInfo::of_this_process(&self.ambient, self.program));
        Client {
            core: Arc::new(ClientCore {
                store: self.store,
                ambient: self.ambient,
                info,
                engine: Some(engine),
                last_words: TaskTracker::new(),
                tenures: AtomicU64::new(0),
            }),
        }
    }
}

/// What a client's locks and guards share.
pub(crate) struct ClientCore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ambient: Ambient,
    pub(crate) info: Arc<ClientInfo>,
    /// `None` only while it is being dropped.
    engine: Option<Result<Engine, Error>>,
    /// Releases and clean-ups under way: what dropping the client waits for.
    last_words: TaskTracker,
    tenures: AtomicU64,
}

/// The thread, and the way to the keeper that runs on it.
struct Engine {
    background: Background,
    orders: mpsc::UnboundedSender<Order>,
}

impl ClientCore {
    pub(crate) fn now(&self) -> BootInstant {
        self.ambient.clock.now()
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.info.pid
    }

    fn engine(&self) -> Result<&Engine, Error> {
        if self.is_forked() {
            return Err(forked());
        }
        match &self.engine {
            Some(engine) => engine.as_ref().map_err(Clone::clone),
            None => Err(Error::new(ErrorKind::Closed, "the client is being dropped")),
        }
    }

    pub(crate) fn background(&self) -> Result<&Background, Error> {
        Ok(&self.engine()?.background)
    }

    /// Runs `task` to its end on the background thread, whatever becomes of the future returned.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: BoxFuture<'static, T>,
    ) -> Result<impl Future<Output = Result<T, Error>> + Send + use<T>, Error> {
        Ok(self.background()?.run(task))
    }

    /// As [`run`](Self::run), for work that a client still finishes when it is dropped.
    pub(crate) fn clean_up(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(background) = self.background() {
            background.spawn(self.last_words.track_future(task));
        }
    }

    pub(crate) fn next_tenure(&self) -> u64 {
        self.tenures.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn keep(&self, tenure: &Arc<Tenure>) {
        self.order(Order::Keep(Arc::clone(tenure)));
    }

    fn order(&self, order: Order) {
        if let Ok(engine) = self.engine() {
            // Without a keeper the thread has ended, and the deadline ends each guard.
            let _ = engine.orders.send(order);
        }
    }

    /// Stops renewing and frees the lock, on the background thread.
    pub(crate) fn free(
        &self,
        tenure: &Tenure,
    ) -> impl Future<Output = Result<Result<Release, Error>, Error>> + Send + use<> {
        self.order(Order::Forget(tenure.id));
        let store = Arc::clone(&self.store);
        let claim = Arc::clone(&tenure.claim);
        let release = self.last_words.track_future(async move {
            let outcome = store.release(&claim).await;
            tracing::debug!(key = %claim.key, ?outcome, "release");
            outcome
        });
        let running = self.run(Box::pin(release));
        async move {
            match running {
                Ok(running) => running.await,
                Err(error) => Err(error),
            }
        }
    }
}

impl Drop for ClientCore {
    fn drop(&mut self) {
        let engine = self.engine.take();
        if self.is_forked() {
            // The child has a copy of the memory but none of the threads, and any of their mutexes
            // may be locked for ever: it leaves them alone.
            std::mem::forget(engine);
            return;
        }
        self.last_words.close();
        let last_words = self.last_words.clone();
        let store = Arc::clone(&self.store);
        if let Some(Ok(mut engine)) = engine {
            engine.background.stop(async move {
                last_words.wait().await;
                store.settle().await;
            });
        }
    }
}

impl fmt::Debug for ClientCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCore")
            .field("id", &self.info.id)
            .finish_non_exhaustive()
    }
}
