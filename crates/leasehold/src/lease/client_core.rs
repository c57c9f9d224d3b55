use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use super::client_context::ClientContext;
use super::held_lease::HeldLease;
use super::new_leases::NewLeases;
use super::renewer::{Renewer, RenewerCommand};
use crate::env::clock::{self, BootInstant};
use crate::runtime::background::{Background, Process, Running, Within};
use crate::store::Release;
use crate::telemetry::{HoldEnd, HoldMeter, ReleaseEnd, spans};
use crate::types::{Error, ErrorKind, forked};

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
}

impl ClientCore {
    /// Starts the renewer on the background thread, if there is one.
    pub(crate) fn start(context: ClientContext, background: Result<Background, Error>) -> Self {
        let engine = background.map(|background| {
            let (commands, inbox) = mpsc::unbounded_channel();
            let new_leases = Arc::<NewLeases>::default();
            background.spawn(Renewer::new(&context, inbox, Arc::clone(&new_leases)).run());
            Engine {
                background,
                commands,
                new_leases,
            }
        });
        Self {
            context: Arc::new(context),
            engine: Some(engine),
            held_leases: AtomicU64::new(0),
            process: Process::current(),
        }
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.context.now()
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

    /// Returns a future that runs `task` where it is polled, and drops it when it is dropped. The thread of a dropped
    /// client ends only after both, so the task must not keep the client alive.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<Within<T>, Error> {
        let task = self.context.shutdown_tracker.track_future(task);
        Ok(self.engine()?.background.within(task))
    }

    /// Resolves after `span`, on any executor. Dropping the future leaves nothing running.
    pub(crate) async fn pause(&self, span: Duration) -> Result<(), Error> {
        let clock = &self.context.env.clock;
        let rest = clock.sleep_until(self.now() + span);
        self.engine()?.background.within(rest).await;
        Ok(())
    }

    /// Waits until everything in progress has ended, for at most `limit`. Returns whether it has.
    pub(crate) async fn flush(&self, limit: Option<Duration>) -> Result<bool, Error> {
        let context = Arc::clone(&self.context);
        let flushing = async move {
            let Some(limit) = limit else {
                context.finish().await;
                return true;
            };
            let clock = Arc::clone(&context.env.clock);
            let end = clock.now() + limit;
            clock::within(&*clock, end, context.finish())
                .await
                .is_some()
        };
        Ok(self.engine()?.background.run(flushing).await)
    }

    pub(crate) fn next_lease_id(&self) -> u64 {
        self.held_leases.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts renewing the lease, and marks it lost at its deadline. It has been held since `since`.
    pub(crate) fn keep(&self, held_lease: &Arc<HeldLease>, since: BootInstant) {
        held_lease.measure(HoldMeter::begin(&self.context.metrics, since));
        // No attempt begins in a forked child.
        if let Ok(engine) = self.inherited_engine()
            && engine.new_leases.add(Arc::clone(held_lease))
        {
            // Without a renewer, the thread has ended; each guard then ends at its deadline.
            let _ = engine.commands.send(RenewerCommand::Look);
        }
    }

    /// Renews the lease in shared mode from now on.
    pub(crate) async fn downgrade(&self, held_lease: &HeldLease) -> Result<(), Error> {
        let (asking, outcome) = oneshot::channel();
        let engine = self.engine()?;
        held_lease.downgrade();
        let _ = engine
            .commands
            .send(RenewerCommand::Downgrade(held_lease.id, asking));
        outcome.await.unwrap_or_else(|_| {
            let text = "the lease is kept no more";
            Err(Error::new(ErrorKind::Closed, text).with_unknown_effect())
        })
    }

    /// Stops renewing, and lets the lease end by itself.
    pub(crate) fn let_go(&self, held_lease: &HeldLease) -> Result<(), Error> {
        let engine = self.engine()?;
        held_lease.ended(HoldEnd::HandedOn, self.now());
        if engine.new_leases.remove(held_lease.id).is_none() {
            let _ = engine.commands.send(RenewerCommand::Forget(held_lease.id));
        }
        let session = Arc::clone(&self.context.session);
        let claim = Arc::clone(held_lease.claim());
        // Only the end of the client waits for this task.
        drop(self.run(async move { session.detach(&claim) })?);
        Ok(())
    }

    /// Stops renewing and frees the lock. After an unclean end of a lock with a delay, the lease ends by
    /// itself instead. Must not be called in a forked child.
    pub(crate) fn free(
        &self,
        held_lease: &HeldLease,
    ) -> Result<Running<Result<Release, Error>>, Error> {
        let engine = self.inherited_engine()?;
        let id = held_lease.id;
        // Most leases are released before the renewer takes them over.
        let is_kept = engine.new_leases.remove(id).is_none();
        let commands = is_kept.then(|| engine.commands.clone());
        let context = Arc::clone(&self.context);
        let claim = Arc::clone(held_lease.claim());
        let now = self.now();
        let stays_closed = held_lease.stays_closed(now);
        held_lease.ended(HoldEnd::Released, now);
        let span = spans::release(&claim.key);
        let around = span.clone();
        let freeing = async move {
            if let Some(commands) = commands {
                let _ = commands.send(RenewerCommand::Forget(id));
            }
            if stays_closed {
                tracing::warn!(key = %claim.key, delay = ?claim.delay, "not released, because it was lost");
                context.session.detach(&claim);
                context.released(ReleaseEnd::LeftClosed, &span);
                return Ok(Release::WasLost);
            }
            let outcome = context.session.release(&claim).await;
            context.released(ReleaseEnd::of(&outcome), &span);
            tracing::debug!(key = %claim.key, ?outcome, "release");
            outcome
        };
        let shutdown_tracker = &self.context.shutdown_tracker;
        // Without a subscriber, the task needs no room for a span.
        Ok(if around.is_disabled() {
            engine
                .background
                .run(shutdown_tracker.track_future(freeing))
        } else {
            let freeing = freeing.instrument(around);
            engine
                .background
                .run(shutdown_tracker.track_future(freeing))
        })
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
