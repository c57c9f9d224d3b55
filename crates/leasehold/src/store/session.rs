use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::{
    AcquireError, Admin, Grant, Health, Held, Inspection, LockRequest, Progress, Records,
    ReleaseReply, RenewReply,
};
use crate::env::{BoxFuture, Env};
use crate::runtime::background;
use crate::types::{ClientInfo, Error, ErrorKind};

/// The locks of one client at a [`Store`](super::Store). It owns the connections.
///
/// The client polls the futures of [`acquire`](Self::acquire) and [`release`](Self::release) where its caller polls,
/// perhaps outside of a tokio runtime: what needs one runs in [`SessionContext::in_runtime`]. The other futures are polled
/// inside the runtime of the client's background thread, possibly on the thread of a caller. No method may block that
/// thread, and each future may be dropped at any await point. The client waits for [`flush`](Self::flush), and then drops
/// the session. In a forked child it calls nothing.
///
/// A session must implement `acquire`, `renew` and `release`. [`Inspection`], [`Admin`], [`Records`]
/// and [`Health`] are optional traits, which it returns if it has them.
pub trait Session: fmt::Debug + Send + Sync + 'static {
    /// Takes the lock, and waits for it if `request.waits`. Reports to `progress` what it learns meanwhile.
    ///
    /// Each call has a new owner, so that nothing late of an earlier call can look like this one. A session that
    /// releases an owner within a wait continues with another one, and [names it in the grant](Grant::owner).
    ///
    /// # Contract
    ///
    /// - **A1** While an exclusive request holds, the store grants no other request on its key. While a
    ///   shared request holds, it grants no exclusive one. Different keys do not affect each other.
    /// - **A2** Shared requests on one key hold together, each with its own fence, if `guarantees` offers
    ///   shared mode. Otherwise the store refuses a shared request as unsupported.
    /// - **A8** Requests on permits hold together if they name the same number of permits: at most that
    ///   many requests, each with its own permit and fence. The store chooses the permit. Meanwhile, a
    ///   request in another mode is busy, and a request with another number of permits fails with
    ///   [`ErrorKind::PermitsDiffer`](crate::ErrorKind::PermitsDiffer), whether or not a permit is free.
    ///   If `guarantees` offers no permits, the store refuses such a request as unsupported.
    /// - **A4** A grant's fence is greater than every fence granted for the key before, in every
    ///   process and across restarts, and greater than the `proposal` of the request that holds. A wait proposes the wall
    ///   clock of its last request.
    /// - **A5** A request that does not wait is answered [`AcquireError::Busy`] at once if the lock is not free for it,
    ///   and leaves nothing held. A request that waits is never answered `Busy`.
    /// - **A6** If leases expire, the lock is free again once the request's TTL is over without a renewal.
    ///   If they end with the process, the lock is free once the process is gone.
    /// - **A11** The [term](Grant::term) of a grant begins before the request was sent that the store answers. A server that
    ///   notifies a waiter of its turn does not say when the lease began, so the session then asks again.
    ///
    /// If the request waits:
    ///
    /// - **W1** It is granted within a bounded time after the lock became free for it. Without news, the session asks
    ///   no more often than [`Env::poll_pause`] does.
    /// - **W2** `progress` has a first report within [`LockRequest::limit`], and a new one when a report of `Busy` changed. A
    ///   store that does not answer is unavailable once a request took that long; the session goes on, or fails with an
    ///   unknown effect.
    /// - **W3** If `guarantees` says first come, first served: after a release, the store grants the lock
    ///   to the requests in the queue in the order in which they began to wait, and to no other request
    ///   before them. It skips waiters that have ended.
    /// - **W5** If `guarantees` offers shared mode, a waiting exclusive request keeps out later requests that
    ///   share the lock or want a permit. Only two kinds of request may come before it: those that already
    ///   waited while another writer held the lock, and those that go ahead of the queue. An endless
    ///   stream of readers or writers does not keep the others waiting without end.
    /// - **W6** While nothing changes, how many requests a session sends for its waiters of a lock does not depend on their
    ///   number.
    /// - **W7** It ends when the client's limit is over, also while the session connects or turns to another server. If one of three or
    ///   more servers does not answer, refuses, or is slow, a request with five seconds is granted.
    ///
    /// # Errors
    ///
    /// - **A10** `effect` is `Unknown` if the request may hold or wait; the client then releases it, and may begin anew with
    ///   another owner. Otherwise nothing of the request is left, not even a place in a queue.
    ///
    /// # Cancel safety
    ///
    /// - **A7** May be dropped at any await point; a `release` of the same request afterwards leaves
    ///   nothing held, reserved or queued, however far the attempt had got.
    /// - **A12** May be kept and not polled: a `release` of the same request then ends, and frees the lock. The client
    ///   does so if the caller has seen that the lock is busy, was woken, and has not polled for a third of the TTL.
    /// - **A9** The caller may poll it, and a `release`, outside of a tokio runtime.
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>>;

    /// Renews each lease for its whole TTL. Answers in the order of `leases`.
    ///
    /// # Contract
    ///
    /// - **R1** `Renewed` means that the lease still existed: a renewal never takes a free lock, nor a
    ///   lock that another owner holds.
    /// - **R2** Each lease has its own answer. A lease that is lost, or broken in any way, does not
    ///   change the answers of the others.
    /// - **R3** A lease renewed in time outlives its first TTL.
    /// - **R4** A shared request whose owner holds the lock exclusively makes it shared. The answer is
    ///   `Renewed`, and no writer can enter in between. A release of the shared request frees the lock in
    ///   either mode.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; each lease may or may not have been renewed.
    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>>;

    /// Frees the lock, the reservation, or the place in a queue that belongs to the owner of the request. It tries that once:
    /// the client repeats a release that failed, until the store answers, or until the lease is over.
    ///
    /// # Contract
    ///
    /// - **F1** Afterwards, the store can grant the lock at once.
    /// - **F2** A request that does not hold is `WasLost`, and the current holder keeps the lock: a late or
    ///   repeated release is harmless.
    /// - **F3** A release never overtakes the request's own earlier attempt.
    /// - **F5** It ends even if the servers are silent: after [`LockRequest::limit`], or a few times that if it has to ask more
    ///   than once.
    /// - **W4** If the store answers, a released wait is soon in no queue, and nothing is reserved for it. The
    ///   store passes on what was reserved.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the lock may or may not have been freed. The client repeats the release if the error
    /// [is retryable](crate::Error::is_retryable). It repeats a refused
    /// one, too, if leases end [with their session](super::Expiry::WithSession).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the client then releases the request once more.
    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>>;

    /// Stops everything that the store does for the lease of `request`, such as repairs, and leaves the
    /// lease to end by itself. The client calls it instead of [`release`](Self::release) when a lock
    /// stays held after its guard: for a [`Handle`](crate::handle::Handle), or for a [lock
    /// delay](crate::Lock::lock_delay) after a loss. It also calls it after a release that it gives up. A store that only acts
    /// when it is asked ignores it.
    fn detach(&self, request: &Arc<LockRequest>) {
        let _ = request;
    }

    /// Resolves once the store has tried to free everything that earlier calls left to the background. A
    /// client waits for it before it ends.
    ///
    /// # Contract
    ///
    /// - **F4** Afterwards, no place that answers still holds what was released.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns how many leases may stay taken until they end, because the store could not confirm their release. A
    /// client that ends reports it after [`flush`](Self::flush). A store that counts them repeats each release by itself. `None` if
    /// the client is to repeat and count them.
    fn unconfirmed_releases(&self) -> Option<usize> {
        None
    }

    /// Returns how to see holders, waiters and held locks; `None` if the store cannot show them.
    fn inspection(&self) -> Option<&dyn Inspection> {
        None
    }

    /// Returns how an operator breaks a lock; `None` if a lock cannot be taken from its holder.
    fn admin(&self) -> Option<&dyn Admin> {
        None
    }

    /// Returns the values that the store keeps next to locks; `None` if it keeps none.
    fn records(&self) -> Option<&dyn Records> {
        None
    }

    /// Returns how to see the members of the store; `None` if it has no members.
    fn health(&self) -> Option<&dyn Health> {
        None
    }
}

/// What a [`Session`] gets from its client.
#[derive(Clone, Debug)]
pub struct SessionContext {
    env: Env,
    client: Arc<ClientInfo>,
    /// `None` if the thread of the client could not be started. The client then calls nothing.
    runtime: Option<Handle>,
    renew_now: Arc<Notify>,
}

impl SessionContext {
    /// Returns the context of `client`, whose tasks run on `runtime`.
    pub fn new(env: Env, client: Arc<ClientInfo>, runtime: Handle) -> Self {
        Self::of_client(env, client, Some(runtime))
    }

    pub(crate) fn of_client(env: Env, client: Arc<ClientInfo>, runtime: Option<Handle>) -> Self {
        Self {
            env,
            client,
            runtime,
            renew_now: Arc::default(),
        }
    }

    /// Makes the client renew all its leases now. A session calls it when it suspects that one of them is lost.
    pub fn renew_now(&self) {
        self.renew_now.notify_one();
    }

    /// Returns the runtime of the client's thread.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }

    /// Returns the notification of [`renew_now`](Self::renew_now).
    pub(crate) fn renewal_request(&self) -> &Arc<Notify> {
        &self.renew_now
    }

    /// Returns the clock and the random numbers to use.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns the client, which the store shows to people who inspect its locks.
    pub fn client(&self) -> &Arc<ClientInfo> {
        &self.client
    }

    /// Polls `future` where the caller polls, within the runtime of the client's background thread. Timers and
    /// sockets of tokio need a runtime, and so does the `sleep_until` of a [`Clock`](crate::clock::Clock).
    pub fn in_runtime<'a, T: 'a>(
        &'a self,
        future: impl Future<Output = T> + Send + 'a,
    ) -> BoxFuture<'a, T> {
        // Each layer around a future that is not boxed keeps a copy.
        let future: BoxFuture<'a, T> = Box::pin(future);
        match &self.runtime {
            Some(runtime) => Box::pin(background::in_runtime(runtime, future)),
            None => future,
        }
    }

    /// Runs `task` on the background thread of the client. The task must not keep the session alive. It ends
    /// at the latest with the thread.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            background::spawn_on(runtime, task);
        }
    }

    /// Runs `task` as [`spawn`](Self::spawn) does, and returns its answer. If the caller drops the returned future, the
    /// task goes on.
    ///
    /// # Errors
    ///
    /// Those of `task`; and [`ErrorKind::Closed`], with an unknown effect, if the thread of the client ended first.
    pub fn spawn_with_answer<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (report, answer) = oneshot::channel();
        self.spawn(async move {
            // The caller may be gone.
            let _ = report.send(task.await);
        });
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| {
                let text = "the client ended before the answer came";
                Err(Error::new(ErrorKind::Closed, text).with_unknown_effect())
            })
        })
    }
}
