use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::task::TaskTracker;
use tracing::Span;

use crate::ambient::Ambient;
use crate::background;
use crate::clock::BootInstant;
use crate::guarantees::{Guarantees, LeaseTerms};
use crate::holder::ClientInfo;
use crate::store::Store;
use crate::telemetry::{ClientMetrics, ReleaseEnd, spans};

/// What a client's tasks in the background work with. Unlike the client's core it does not keep the
/// client alive: the client's thread finishes them after the client is dropped.
#[derive(Debug)]
pub(crate) struct ClientContext {
    pub(crate) store: Arc<dyn Store>,
    /// What the store promises, and the times of its leases: they never change.
    pub(crate) guarantees: Guarantees,
    pub(crate) terms: LeaseTerms,
    pub(crate) ambient: Ambient,
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) metrics: Arc<ClientMetrics>,
    /// Attempts, releases and clean-ups under way.
    pub(crate) last_words: TaskTracker,
    /// Whether the store has ever decided an attempt of this client: its address is right, then.
    was_answered: AtomicBool,
}

impl ClientContext {
    pub(crate) fn new(store: Arc<dyn Store>, ambient: Ambient, info: ClientInfo) -> Self {
        Self {
            guarantees: store.guarantees(),
            terms: store.terms(),
            metrics: Arc::new(ClientMetrics::new(&store.describe())),
            store,
            ambient,
            info: Arc::new(info),
            last_words: TaskTracker::new(),
            was_answered: AtomicBool::new(false),
        }
    }

    /// The store decided an attempt.
    pub(crate) fn answered(&self) {
        // Only the first one writes, to memory that all threads share.
        if !self.was_answered() {
            self.was_answered.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn was_answered(&self) -> bool {
        self.was_answered.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.ambient.clock.now()
    }

    /// A release came to its end.
    pub(crate) fn released(&self, end: ReleaseEnd, span: &Span) {
        self.metrics.released(end);
        spans::released(span, end);
    }

    /// Starts, on the background thread, work that the thread still finishes after the client is dropped.
    pub(crate) fn clean_up(&self, task: impl Future<Output = ()> + Send + 'static) {
        background::spawn(self.last_words.track_future(task));
    }

    /// Resolves once all that is under way is over, and the store has tried what it left to do.
    pub(crate) async fn finish(&self) {
        // More tasks may still begin: closed means that the wait below can end.
        self.last_words.close();
        self.last_words.wait().await;
        self.store.settle().await;
    }
}
