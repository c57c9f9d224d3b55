use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;
use tracing::Span;

use super::unconfirmed_releases::UnconfirmedReleases;
use crate::env::Env;
use crate::env::clock::{self, BootInstant};
use crate::store::{
    Admin, Guarantees, Inspection, LeaseTerms, Records, Session, SessionContext, Store,
};
use crate::telemetry::{ClientMetrics, ReleaseEnd, spans};
use crate::types::{ClientInfo, Error, ErrorKind, Key, exact_span};

/// A server answers this many well within the shortest limit.
const RELEASES_MAX: usize = 64;

/// The state that a client's background tasks work with. Unlike the client's core, it does not keep the
/// client alive: the client's thread finishes the tasks after the client is dropped.
#[derive(Debug)]
pub(crate) struct ClientContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: Arc<dyn Session>,
    /// What the store promises, and the times of its leases: they never change.
    pub(crate) guarantees: Guarantees,
    pub(crate) terms: LeaseTerms,
    pub(crate) env: Env,
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) metrics: Arc<ClientMetrics>,
    /// Notified by a session that suspects a loss.
    pub(super) renew_now: Arc<Notify>,
    /// Whether the program closed the client.
    is_closed: AtomicBool,
    /// Notified when the program closes the client.
    pub(super) closed: Notify,
    /// Attempts, releases and clean-ups in progress.
    pub(crate) shutdown_tracker: TaskTracker,
    /// Bounds the releases that are under way at once. More of them would wait at the server for longer than their limit, and
    /// then be sent again.
    pub(super) release_turns: Semaphore,
    unconfirmed: UnconfirmedReleases,
    /// Whether the session counts the releases that were not confirmed. If so, it repeats them itself, and each has a limit.
    pub(super) session_counts_releases: bool,
    /// Whether the store has ever decided an attempt of this client, or answered that it is not ready. If so, its
    /// address is right.
    was_answered: AtomicBool,
}

impl ClientContext {
    /// Opens a session. `runtime` is that of the background thread, if there is one.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        env: Env,
        info: ClientInfo,
        runtime: Option<Handle>,
    ) -> Self {
        let info = Arc::new(info);
        let context = SessionContext::of_client(env.clone(), Arc::clone(&info), runtime);
        let renew_now = Arc::clone(context.renewal_request());
        let session = store.open(context);
        Self {
            renew_now,
            session_counts_releases: session.unconfirmed_releases().is_some(),
            session,
            guarantees: store.guarantees(),
            terms: store.terms(),
            metrics: Arc::new(ClientMetrics::new(&store.to_string())),
            store,
            env,
            info,
            is_closed: AtomicBool::new(false),
            closed: Notify::new(),
            shutdown_tracker: TaskTracker::new(),
            release_turns: Semaphore::new(RELEASES_MAX),
            unconfirmed: UnconfirmedReleases::default(),
            was_answered: AtomicBool::new(false),
        }
    }

    /// Records that the store decided an attempt, or answered that it is not ready.
    pub(crate) fn answered(&self) {
        // Only the first call writes to this memory, which all threads share.
        if !self.was_answered() {
            self.was_answered.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn was_answered(&self) -> bool {
        self.was_answered.load(Ordering::Relaxed)
    }

    /// Ends the pauses of the client. From now on, [`check_open`](Self::check_open) fails.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closed.notify_waiters();
    }

    /// Fails if the program closed the client.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.is_closed.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Closed, "the client was closed")),
            false => Ok(()),
        }
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.env.clock.now()
    }

    /// Returns the part of the store that shows its locks.
    pub(crate) fn inspection(&self) -> Result<&dyn Inspection, Error> {
        let part = self.session.inspection();
        part.ok_or_else(|| self.unsupported("cannot list its locks"))
    }

    /// Returns the part of the store that breaks locks.
    pub(crate) fn admin(&self) -> Result<&dyn Admin, Error> {
        let part = self.session.admin();
        part.ok_or_else(|| self.unsupported("cannot take a lock from its holder"))
    }

    /// Returns the part of the store that keeps records.
    pub(crate) fn records(&self) -> Result<&dyn Records, Error> {
        let part = self.session.records();
        part.ok_or_else(|| self.unsupported("keeps no records"))
    }

    /// The same error, naming the store unless it names one already.
    pub(crate) fn named(&self, error: Error) -> Error {
        error.with_store(self.store.to_string())
    }

    pub(crate) fn unsupported(&self, reason: impl Into<String>) -> Error {
        self.named(Error::new(ErrorKind::Unsupported, reason))
    }

    /// Returns the error of a store that did not answer about a lock.
    pub(super) fn no_answer(&self, key: &Key, text: impl Into<String>) -> Error {
        let error = Error::new(ErrorKind::Unreachable, text).with_key(key);
        self.named(error.with_unknown_effect())
    }

    /// Records the end of a release.
    pub(crate) fn released(&self, end: ReleaseEnd, span: &Span) {
        self.metrics.released(end);
        spans::released(span, end);
    }

    /// Records that the store did not confirm the release of a lease that is over at `end`.
    pub(crate) fn leave_unconfirmed(&self, end: BootInstant) {
        self.unconfirmed.add(end, self.now());
    }

    /// Waits until all tasks in progress have ended, for at most `limit`. Fails if some have not, or if releases that may
    /// still matter were not confirmed.
    pub(crate) async fn flush_within(&self, limit: Duration) -> Result<(), Error> {
        let clock = &*self.env.clock;
        let finished = clock::within(clock, clock.now() + limit, self.finish()).await;
        let count = self.session.unconfirmed_releases().unwrap_or_else(|| {
            let in_progress = match finished {
                Some(()) => 0,
                None => self.shutdown_tracker.len().max(1),
            };
            in_progress + self.unconfirmed.count(clock.now())
        });
        if count == 0 {
            return Ok(());
        }
        let within = match finished {
            Some(()) => String::new(),
            None => format!(" within {}", exact_span(limit)),
        };
        let text = match count {
            1 => format!(
                "the store did not confirm a release{within}; its lock may stay held until its TTL is over"
            ),
            _ => format!(
                "the store did not confirm {count} releases{within}; their locks may stay held until their TTL is over"
            ),
        };
        let error = Error::new(ErrorKind::Unreachable, text).with_unknown_effect();
        Err(self.named(error))
    }

    /// Resolves once all tasks in progress have ended and the store has tried its remaining work.
    pub(crate) async fn finish(&self) {
        // More tasks may still begin. Closing the tracker only allows the wait below to end.
        self.shutdown_tracker.close();
        self.shutdown_tracker.wait().await;
        self.session.flush().await;
    }
}
