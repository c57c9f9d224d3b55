mod optional;
mod records;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock;
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Grant, Guarantees, Held, Inspection, LeaseTerms, LockRequest,
    Progress, Records, ReleaseReply, RenewReply, Session, SessionContext, Store, background,
    locked,
};
use leasehold::{Error, ErrorKind, Key};
use tokio::sync::watch;

use super::crash_injector::{CrashInjector, RequestOutcome};

/// The fault of a [`FaultyStore`]. A client gives up on an answer that takes longer than 3.5 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// None: the store works.
    None,
    /// It answers nothing. Once the fault is removed, the store carries out everything that it was sent, including requests
    /// that have no waiting caller, as a stopped server does with what its kernel received.
    Frozen,
    /// It cannot be reached: each request fails at once.
    Unreachable,
    /// It answers that it is not ready.
    NotReady,
    /// It delays each answer by this span.
    Slow(Duration),
    /// Each request reaches it after this span.
    Late(Duration),
    /// Each request and each answer takes a random time of at most this span.
    Jittery(Duration),
    /// It panics on every request.
    Panics,
}

/// A store in front of another one, usually of a [`MemoryStore`](leasehold::memory::MemoryStore), which a test can make fail.
///
/// Its clones are the same store. Clients that it fails for are those that use it: a client of the inner store still works, so
/// a test can let one client lose its connection while another gets the lock.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leasehold::{Client, LostReason, memory::MemoryStore};
/// use leasehold_testkit::{Fault, FaultyStore, virtual_env};
///
/// // #[tokio::test(start_paused = true)]
/// async fn client_survives_an_outage() -> Result<(), leasehold::Error> {
///     let (memory, env) = (MemoryStore::new(), virtual_env(1));
///     let store = FaultyStore::new(memory.clone());
///     let locks = Client::builder(store.clone()).env(env.clone()).on_current_runtime().build();
///     let guard = locks.lock("report").acquire().await?;
///
///     store.set(Fault::Frozen);
///     assert_eq!(guard.lost().await, LostReason::Unreachable); // at its deadline
///     let refused = locks.lock("other").wait(Duration::from_secs(3)).acquire().await;
///     assert!(refused.unwrap_err().is_unreachable());
///     let other = Client::builder(memory).env(env).on_current_runtime().build();
///     other.lock("report").acquire().await?; // once the lease has ended
///
///     store.set(Fault::None);
///     locks.lock("other").acquire().await?; // the same client works again
///     Ok(())
/// }
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
/// # runtime.unwrap().block_on(client_survives_an_outage()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    fault: watch::Sender<Fault>,
    calls: Arc<Mutex<Vec<StoreCall>>>,
    crash_injector: Option<CrashInjector>,
    name: Option<String>,
}

/// A session of a store that can be made to fail.
#[derive(Debug)]
struct FaultySession {
    store: FaultyStore,
    inner: Arc<dyn Session>,
    context: SessionContext,
}

/// A request as it reached a [`FaultyStore`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreCall {
    /// `acquire`.
    Acquire(LockRequest),
    /// `renew`, one per lease.
    Renew(LockRequest),
    /// `release`.
    Release(LockRequest),
    /// `waiters`.
    Waiters(Key),
}

impl FaultyStore {
    /// Returns `inner`, without a fault.
    pub fn new(inner: impl Store) -> Self {
        Self {
            inner: Arc::new(inner),
            fault: watch::Sender::new(Fault::None),
            calls: Arc::default(),
            crash_injector: None,
            name: None,
        }
    }

    /// Makes this the store of a client that dies when `crash_injector` says so.
    #[cfg(feature = "internal")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_fuse(mut self, crash_injector: CrashInjector) -> Self {
        self.crash_injector = Some(crash_injector);
        self
    }

    /// Gives the store this name in messages. Default: that of the inner store.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the fault of the store from now on, or removes it.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Returns all requests that reached the store, carried out or not, in order.
    pub fn calls(&self) -> Vec<StoreCall> {
        locked(&self.calls).clone()
    }

    fn note(&self, call: StoreCall) {
        locked(&self.calls).push(call);
    }
}

impl FaultySession {
    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(Arc<dyn Session>) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let asking = self.through(request);
        Box::pin(async move { asking.await? })
    }

    fn through<T: Send + 'static>(
        &self,
        request: impl FnOnce(Arc<dyn Session>) -> BoxFuture<'static, T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (inner, mut fault) = (Arc::clone(&self.inner), self.store.fault.subscribe());
        let (env, current) = (self.context.env().clone(), *fault.borrow());
        let (id, crash_injector) = (self.store.to_string(), self.store.crash_injector.clone());
        let (clock, name) = (env.clock.clone(), id.clone());
        let answering = async move {
            match crash_injector.map_or(RequestOutcome::Answered, |crash_injector| {
                crash_injector.next()
            }) {
                RequestOutcome::Answered => {}
                RequestOutcome::CarriedOut => {
                    request(inner).await;
                    return std::future::pending().await;
                }
                RequestOutcome::Unsent => return std::future::pending().await,
            }
            match current {
                Fault::None => Ok(request(inner).await),
                Fault::Frozen => {
                    // A separate task, which continues when its caller is gone.
                    let answer = background::spawn(async move {
                        let thawed = fault
                            .wait_for(|fault| *fault != Fault::Frozen)
                            .await
                            .is_ok();
                        if !thawed {
                            std::future::pending::<()>().await;
                        }
                        request(inner).await
                    });
                    answer.await.map_err(|_| unreachable(&id))
                }
                Fault::Unreachable => Err(unreachable(&id)),
                Fault::NotReady => Err(unreachable(&id).with_not_ready()),
                Fault::Slow(span) => {
                    let answer = request(inner).await;
                    env.clock.sleep_until(env.clock.now() + span).await;
                    Ok(answer)
                }
                Fault::Jittery(most) => {
                    let travels = || {
                        let span = env.random_span(Duration::ZERO, most);
                        env.clock.sleep_until(env.clock.now() + span)
                    };
                    travels().await;
                    let answer = request(inner).await;
                    travels().await;
                    Ok(answer)
                }
                Fault::Late(span) => {
                    env.clock.sleep_until(env.clock.now() + span).await;
                    Ok(request(inner).await)
                }
                Fault::Panics => panic!("{id} was told to panic"),
            }
        };
        Box::pin(async move {
            let answer = clock::within(&*clock, clock.now() + LIMIT, answering).await;
            answer.unwrap_or_else(|| Err(too_late(name)))
        })
    }
}

impl FaultySession {
    /// Waits for the lock. A fault that begins meanwhile breaks the wait off, or holds up its answer.
    async fn wait(
        &self,
        lock_request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let (mut fault, env) = (self.store.fault.subscribe(), self.context.env());
        let (name, clock) = (self.store.to_string(), &*env.clock);
        let mut waiting = self.inner.acquire(lock_request, progress);
        loop {
            let faulty = fault.wait_for(|fault| !matches!(fault, Fault::None));
            let current = tokio::select! {
                biased;
                current = faulty => current.map_or(Fault::None, |current| *current),
                answer = &mut waiting => return answer,
            };
            match current {
                Fault::None | Fault::Slow(_) | Fault::Late(_) | Fault::Jittery(_) => {
                    let answer = waiting.await;
                    if let Fault::Slow(span) | Fault::Late(span) | Fault::Jittery(span) = current {
                        clock.sleep_until(clock.now() + span).await;
                    }
                    return answer;
                }
                Fault::Frozen => {
                    let thawed = fault.wait_for(|fault| *fault != Fault::Frozen);
                    if clock::within(clock, clock.now() + LIMIT, thawed)
                        .await
                        .is_none()
                    {
                        return Err(too_late(name).into());
                    }
                }
                Fault::Unreachable => return Err(unreachable(&name).with_unknown_effect().into()),
                Fault::NotReady => {
                    let error = unreachable(&name).with_not_ready();
                    return Err(error.with_unknown_effect().into());
                }
                Fault::Panics => panic!("{name} was told to panic"),
            }
        }
    }
}

fn too_late(name: String) -> Error {
    let error = Error::new(ErrorKind::Unreachable, "no answer in time");
    error.with_store(name).with_unknown_effect()
}

/// How long the store waits for an answer: every store has such a limit.
const LIMIT: Duration = Duration::from_millis(3_500);

fn unreachable(id: &str) -> Error {
    Error::new(ErrorKind::Unreachable, "connection refused").with_store(id)
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => self.inner.fmt(f),
        }
    }
}

impl Store for FaultyStore {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        self.inner.terms()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(FaultySession {
            store: self.clone(),
            inner: self.inner.open(context.clone()),
            context,
        })
    }
}

impl Session for FaultySession {
    fn acquire<'a>(
        &'a self,
        lock_request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        self.store
            .note(StoreCall::Acquire((**lock_request).clone()));
        let first = Arc::new((**lock_request).clone().waiting(false));
        let asking = self.through(move |inner| {
            Box::pin(async move { inner.acquire(&first, &Progress::new()).await })
        });
        self.context.in_runtime(async move {
            match asking.await? {
                Err(AcquireError::Busy(busy)) if lock_request.waits => {
                    progress.busy(busy);
                    self.wait(lock_request, progress).await
                }
                answer => answer,
            }
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        for held in leases {
            self.store.note(StoreCall::Renew((*held.request).clone()));
        }
        let leases = leases.to_vec();
        let count = leases.len();
        let asking = self.through(move |inner| Box::pin(async move { inner.renew(&leases).await }));
        Box::pin(async move {
            match asking.await {
                Ok(answers) => answers,
                Err(error) => vec![RenewReply::Unknown(error); count],
            }
        })
    }

    fn release<'a>(
        &'a self,
        lock_request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        self.store
            .note(StoreCall::Release((**lock_request).clone()));
        let lock_request = Arc::clone(lock_request);
        let asking =
            self.through(move |inner| Box::pin(async move { inner.release(&lock_request).await }));
        self.context.in_runtime(async move { asking.await? })
    }

    fn detach(&self, lock_request: &Arc<LockRequest>) {
        self.inner.detach(lock_request);
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        self.inner.flush()
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        self.inner.inspection().is_some().then_some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        self.inner.admin().is_some().then_some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        self.inner.records().is_some().then_some(self)
    }
}

impl From<FaultyStore> for Arc<dyn Store> {
    fn from(member: FaultyStore) -> Self {
        Arc::new(member)
    }
}
