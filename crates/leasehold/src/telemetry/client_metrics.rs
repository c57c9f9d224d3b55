use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use super::labels::{AttemptEnd, HoldEnd, Loss, ReleaseEnd, RenewalEnd, WaitEnd};
use super::lock_events::EventSource;
use super::metric::{ACQUIRE_WAIT, ATTEMPTS, CONTENDED, HELD, HOLD, LOST, RELEASES, RENEWAL};
use super::registry::{Each, Registry};

/// The metrics of a client's locks. The client registers them once, when it is built: from then on each
/// value costs a branch, and an atomic operation if a recorder is installed.
#[derive(Debug)]
pub(crate) struct ClientMetrics {
    pub(super) held: Gauge,
    pub(super) holds: Each<HoldEnd, Histogram>,
    pub(super) lost: Each<Loss, Counter>,
    waits: Each<WaitEnd, Histogram>,
    attempts: Each<AttemptEnd, Counter>,
    contended: Counter,
    renewals: Each<RenewalEnd, Histogram>,
    releases: Each<ReleaseEnd, Counter>,
    /// The streams of what happens to the locks.
    pub(crate) events: EventSource,
}

impl ClientMetrics {
    /// Returns the metrics of a client of `store`, at the recorder that is installed now.
    pub(crate) fn new(store: &str) -> Self {
        metrics::with_recorder(|recorder| {
            let registry = Registry::new(recorder, store);
            Self {
                held: registry.gauge(&HELD),
                holds: registry.histograms(&HOLD),
                lost: registry.counters(&LOST),
                waits: registry.histograms(&ACQUIRE_WAIT),
                attempts: registry.counters(&ATTEMPTS),
                contended: registry.counter(&CONTENDED),
                renewals: registry.histograms(&RENEWAL),
                releases: registry.counters(&RELEASES),
                events: EventSource::default(),
            }
        })
    }

    pub(crate) fn waited(&self, end: WaitEnd, span: Duration) {
        self.waits.of(end).record(span);
    }

    pub(crate) fn attempted(&self, end: AttemptEnd) {
        self.attempts.of(end).increment(1);
    }

    pub(crate) fn contended(&self) {
        self.contended.increment(1);
    }

    pub(crate) fn renewed(&self, end: RenewalEnd, span: Duration) {
        self.renewals.of(end).record(span);
    }

    pub(crate) fn released(&self, end: ReleaseEnd) {
        self.releases.of(end).increment(1);
    }
}
