use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::client_context::ClientContext;
use super::held_lease::HeldLease;
use super::new_leases::NewLeases;
use super::pending_attempts::{PendingAttempt, PendingAttempts, WatchedAttempt};
use super::release::{LockRelease, Release, Released};
use super::renewer::{Renewer, RenewerCommand};
use crate::env::BoxFuture;
use crate::env::clock::BootInstant;
use crate::runtime::background::{Background, Call, Process, Running, in_runtime};
use crate::store::{LockRequest, ReleaseReply};
use crate::telemetry::HoldEnd;
use crate::types::{Error, ErrorKind, Key, LostReason, forked};

/// The state that a client's locks and guards share.
pub(crate) struct ClientCore {
    pub(crate) context: Arc<ClientContext>,
    /// `None` only during drop.
    engine: Option<Result<Engine, Error>>,
    held_leases: AtomicU64,
    process: Process,
}

/// The thread, and the channel to the renewer that runs on it.
struct Engine {
    background: Background,
    commands: mpsc::UnboundedSender<RenewerCommand>,
    new_leases: Arc<NewLeases>,
    pending_attempts: Arc<PendingAttempts>,
}

impl ClientCore {
    /// Starts the renewer on the background thread, if there is one.
    pub(crate) fn start(context: ClientContext, background: Result<Background, Error>) -> Self {
        let context = Arc::new(context);
        let engine = background.map(|background| {
            let (commands, inbox) = mpsc::unbounded_channel();
            let new_leases = Arc::<NewLeases>::default();
            let pending_attempts = Arc::<PendingAttempts>::default();
            let lists = (Arc::clone(&new_leases), Arc::clone(&pending_attempts));
            background.spawn(Renewer::new(Arc::clone(&context), inbox, lists).run());
            Engine {
                background,
                commands,
                new_leases,
                pending_attempts,
            }
        });
        Self {
            context,
            engine: Some(engine),
            held_leases: AtomicU64::new(0),
            process: Process::current(),
        }
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.context.now()
    }

    /// Returns the process of the client.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    fn engine(&self) -> Result<&Engine, Error> {
        if self.is_forked() {
            return Err(forked());
        }
        self.inherited_engine()
    }

    /// In a forked child, this is the parent's engine, which does not run.
    fn inherited_engine(&self) -> Result<&Engine, Error> {
        match &self.engine {
            Some(engine) => engine.as_ref().map_err(Clone::clone),
            None => Err(Error::new(ErrorKind::Closed, "the client is being dropped")),
        }
    }

    /// Returns a future that runs `task` where it is polled. If that future is dropped, the background
    /// thread finishes the task. The thread of a dropped client ends only after the task, so the task
    /// must not keep the client alive.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<Running<T>, Error> {
        let task = self.context.shutdown_tracker.track_future(task);
        Ok(self.engine()?.background.run(task))
    }

    /// Runs a question to the store as [`run`](Self::run) does. An error names the store, and the lock that the question is
    /// about.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        key: Option<Key>,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.context.check_open()?;
        let answer = self.run(question)?.await;
        answer.map_err(|error| {
            let error = self.context.named(error);
            match &key {
                Some(key) => error.with_key(key),
                None => error,
            }
        })
    }

    /// Fails in a forked child, if the thread could not be started, and after the client was closed.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        self.engine()?;
        self.context.check_open()
    }

    /// Polls `future` where the caller polls, and drops it when it is dropped. In a forked child it is forgotten
    /// instead: it may need a mutex that a thread of the parent held.
    pub(crate) fn call<'a, T>(&'a self, future: BoxFuture<'a, T>) -> Call<'a, T> {
        Call::new(future, &self.process)
    }

    /// Resolves once the clock has reached `deadline`, on any executor.
    pub(crate) async fn sleep_until(&self, deadline: BootInstant) {
        let sleep = self.context.env.clock.sleep_until(deadline);
        match self.inherited_engine() {
            Ok(engine) => in_runtime(engine.background.handle(), self.call(sleep)).await,
            Err(_) => self.call(sleep).await,
        }
    }

    /// Resolves after `span`, on any executor. Dropping the future leaves nothing running.
    pub(crate) async fn pause(&self, span: Duration) -> Result<(), Error> {
        // Before the check: a close after it wakes this pause.
        let closed = self.context.closed.notified();
        self.check_running()?;
        tokio::select! {
            biased;
            () = self.sleep_until(self.now() + span) => Ok(()),
            () = closed => self.context.check_open(),
        }
    }

    /// Waits until everything in progress has ended, for at most `limit`. Fails if the store did not confirm all
    /// releases.
    pub(crate) async fn flush(&self, limit: Duration) -> Result<(), Error> {
        let context = Arc::clone(&self.context);
        let flushing = async move { context.flush_within(limit).await };
        self.engine()?.background.run(flushing).await
    }

    /// Ends all waits and holds of the client, and then [flushes](Self::flush) for the rest of `limit`.
    pub(crate) async fn close(&self, limit: Duration) -> Result<(), Error> {
        let engine = self.engine()?;
        let end = self.now() + limit;
        self.context.close();
        // Otherwise a store would pass a lock that is released to a waiter of this client, which no caller may poll.
        let places = engine.pending_attempts.close();
        let context = Arc::clone(&self.context);
        let leaving = async move {
            let now = context.now();
            let places = places.iter().map(async |request| {
                drop(
                    Release::of_attempt(request, now)
                        .until_answered(&context)
                        .await,
                );
            });
            join_all(places).await;
        };
        self.within(limit / 2, self.run(leaving)?).await;
        let mut leases: Vec<_> = engine.new_leases.take_all().collect();
        let (report, kept) = oneshot::channel();
        let _ = engine.commands.send(RenewerCommand::TakeAll(report));
        leases.extend(kept.await.unwrap_or_default());
        for lease in leases {
            lease.lose(LostReason::Closed, self.now());
            self.release_in_background(&lease);
        }
        self.flush(end.since(self.now())).await
    }

    pub(crate) fn next_lease_id(&self) -> u64 {
        self.held_leases.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells the renewer to release `request` if its caller no longer polls it. `None` if there is no renewer.
    pub(crate) fn watch(&self, request: &Arc<LockRequest>) -> Option<WatchedAttempt> {
        let engine = self.inherited_engine().ok()?;
        let clock = Arc::clone(&self.context.env.clock);
        let attempt = PendingAttempt::new(Arc::clone(request), clock);
        let (watched, is_sooner) = engine.pending_attempts.watch(attempt, self.process);
        if is_sooner {
            let _ = engine.commands.send(RenewerCommand::Look);
        }
        Some(watched)
    }

    /// Starts renewing the lease, and marks it lost at its deadline.
    pub(crate) fn keep(&self, held_lease: &Arc<HeldLease>) {
        // No attempt begins in a forked child.
        if let Ok(engine) = self.inherited_engine()
            && engine.new_leases.add(Arc::clone(held_lease))
        {
            // Without a renewer, the thread has ended; each guard then ends at its deadline.
            let _ = engine.commands.send(RenewerCommand::Look);
        }
        // The end of the client may have missed this lease.
        if self.context.check_open().is_err() {
            held_lease.lose(LostReason::Closed, self.now());
        }
    }

    /// Renews the lease now, in the mode that it has.
    pub(crate) async fn renew(&self, held_lease: &Arc<HeldLease>) -> Result<(), Error> {
        let (asking, outcome) = oneshot::channel();
        let engine = self.engine()?;
        let command = RenewerCommand::Renew(Arc::clone(held_lease), asking);
        let _ = engine.commands.send(command);
        outcome.await.unwrap_or_else(|_| {
            let text = "the lease is kept no more";
            Err(Error::new(ErrorKind::Closed, text).with_unknown_effect())
        })
    }

    /// Stops renewing, and lets the lease end by itself.
    pub(crate) fn let_go(&self, held_lease: &HeldLease) -> Result<(), Error> {
        let engine = self.engine()?;
        held_lease.ended(HoldEnd::HandedOn, self.now());
        if !engine.new_leases.remove(held_lease) {
            let _ = engine.commands.send(RenewerCommand::Forget(held_lease.id));
        }
        let session = Arc::clone(&self.context.session);
        let request = Arc::clone(held_lease.request());
        // Only the end of the client waits for this task.
        drop(self.run(async move { session.detach(&request) })?);
        Ok(())
    }

    /// Starts a task on the background thread, which finishes it even after the client is dropped. Does nothing in a
    /// forked child.
    pub(crate) fn clean_up(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(engine) = self.engine() {
            let task = self.context.shutdown_tracker.track_future(task);
            engine.background.spawn(task);
        }
    }

    /// Stops renewing and frees the lock. After an unclean end of a lock with a delay, the lease ends by itself
    /// instead. If the store does not answer in time, or the future is dropped, the background thread frees the lock. Must
    /// not be called in a forked child.
    pub(crate) async fn release(&self, held_lease: &HeldLease) -> Result<ReleaseReply, Error> {
        let release = self.begin_release(held_lease);
        if release.stays_closed {
            return Ok(release.leave_closed(&self.context));
        }
        let mut unfinished = UnfinishedRelease {
            client: self,
            release: Some((release, self.context.shutdown_tracker.token())),
        };
        let answer = match &unfinished.release {
            Some((release, _)) if self.context.session_counts_releases => {
                Some(self.call(release.ask(&self.context)).await)
            }
            // Boxed, since the others need no room for a timer.
            Some((release, _)) => Box::pin(self.ask_in_time(release)).await,
            None => unreachable!("only its end takes it out"),
        };
        match unfinished.answered(answer) {
            Some(outcome) => outcome,
            None => Box::pin(self.finish(unfinished, held_lease.request())).await,
        }
    }

    /// Asks for half of the time that the caller has. The rest is for another connection.
    async fn ask_in_time(&self, release: &LockRelease) -> Option<Released> {
        let call = self.call(release.ask(&self.context));
        self.within(release.caller_limit() / 2, call).await
    }

    /// Goes on with a release in the background, and waits for its answer for as long as the caller does.
    async fn finish(&self, unfinished: UnfinishedRelease<'_>, request: &LockRequest) -> Released {
        let (limit, answer) = unfinished.go_on_in_background();
        match self.within(limit, answer).await {
            Some(Ok(outcome)) => outcome,
            _ => {
                let text =
                    "no answer to the release so far; the client repeats it in the background";
                Err(self.context.no_answer(&request.key, text))
            }
        }
    }

    /// Runs `future` for at most `limit`, on any executor.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep_until(self.now() + limit) => None,
        }
    }

    /// The same, on the background thread. It begins at once, so that a later attempt of this client comes after it.
    pub(crate) fn release_in_background(&self, held_lease: &HeldLease) {
        let release = self.begin_release(held_lease);
        if let Ok(engine) = self.inherited_engine() {
            let freeing = release.run(Arc::clone(&self.context), None);
            let freeing = self.context.shutdown_tracker.track_future(freeing);
            engine.background.run(freeing).begin();
        }
    }

    fn begin_release(&self, held_lease: &HeldLease) -> LockRelease {
        // Most leases are released before the renewer takes them over.
        if let Ok(engine) = self.inherited_engine()
            && !engine.new_leases.remove(held_lease)
        {
            let _ = engine.commands.send(RenewerCommand::Forget(held_lease.id));
        }
        let now = self.now();
        let stays_closed = held_lease.stays_closed(now);
        let was_valid = held_lease.lost_reason().is_none()
            && held_lease.deadline().is_none_or(|deadline| now < deadline);
        held_lease.ended(HoldEnd::Released, now);
        LockRelease::new(held_lease.request(), now, was_valid, stays_closed)
    }
}

/// Releases the lock on the background thread, if the caller drops its future: a repeated release is harmless.
struct UnfinishedRelease<'a> {
    client: &'a ClientCore,
    /// `None` once it has ended, or goes on in the background.
    release: Option<(LockRelease, TaskTrackerToken)>,
}

impl UnfinishedRelease<'_> {
    /// Takes in the answer to the first request, if there was one. `None` if the release is not over.
    fn answered(&mut self, answer: Option<Released>) -> Option<Released> {
        let (release, _) = self.release.as_mut()?;
        let Some(answer) = answer else {
            release.cut_off();
            return None;
        };
        let outcome = release.answered(&self.client.context, answer)?;
        self.release = None;
        Some(outcome)
    }

    /// Returns how long the caller still waits, and the answer.
    fn go_on_in_background(mut self) -> (Duration, oneshot::Receiver<Released>) {
        let (report, answer) = oneshot::channel();
        let Some((release, tracked)) = self.release.take() else {
            return (Duration::ZERO, answer);
        };
        let limit = release.rest_of_limit(self.client.now());
        let context = Arc::clone(&self.client.context);
        self.client.clean_up(release.run(context, Some(report)));
        drop(tracked);
        (limit, answer)
    }
}

impl Drop for UnfinishedRelease<'_> {
    fn drop(&mut self) {
        let Some((mut release, tracked)) = self.release.take() else {
            return;
        };
        if self.client.is_forked() {
            std::mem::forget((release, tracked));
            return;
        }
        release.cut_off();
        let context = Arc::clone(&self.client.context);
        self.client.clean_up(release.run(context, None));
    }
}

impl Drop for ClientCore {
    fn drop(&mut self) {
        let engine = self.engine.take();
        let context = Arc::clone(&self.context);
        if self.is_forked() {
            // The child has a copy of the memory but none of the threads. Any mutex may be locked
            // forever, so the child leaves them alone.
            std::mem::forget((engine, context));
            return;
        }
        if let Some(Ok(mut engine)) = engine {
            engine
                .background
                .stop(async move { context.finish().await });
        }
    }
}

impl fmt::Debug for ClientCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCore")
            .field("id", &self.context.info.id)
            .finish_non_exhaustive()
    }
}
