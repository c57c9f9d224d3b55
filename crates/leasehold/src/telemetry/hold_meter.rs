use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client_metrics::ClientMetrics;
use super::words::{HoldEnd, Loss};
use crate::attempt::LostReason;
use crate::clock::BootInstant;

/// One hold, from its grant until it is given back or lost. Whatever ends it first is told, and nothing
/// after that.
#[derive(Debug)]
pub(crate) struct HoldMeter {
    metrics: Arc<ClientMetrics>,
    began: BootInstant,
    runs: AtomicBool,
}

impl HoldMeter {
    pub(crate) fn begin(metrics: &Arc<ClientMetrics>, began: BootInstant) -> Self {
        metrics.held.increment(1);
        Self {
            metrics: Arc::clone(metrics),
            began,
            runs: AtomicBool::new(true),
        }
    }

    /// Its holder gave it back or up at `now`.
    pub(crate) fn end(&self, end: HoldEnd, now: BootInstant) {
        if self.stop() {
            self.metrics.holds.of(end).record(now.since(self.began));
        }
    }

    /// It was lost, at `now` or before: at its deadline, if that lies before.
    pub(crate) fn lose(&self, reason: LostReason, deadline: Option<BootInstant>, now: BootInstant) {
        let Some(loss) = Loss::of(reason) else {
            return;
        };
        if self.stop() {
            let end = deadline.map_or(now, |deadline| deadline.min(now));
            let held = end.since(self.began);
            self.metrics.holds.of(HoldEnd::Lost).record(held);
            self.metrics.lost.of(loss).increment(1);
        }
    }

    /// `false` if it had ended before.
    fn stop(&self) -> bool {
        let ran = self.runs.swap(false, Ordering::Relaxed);
        if ran {
            self.metrics.held.decrement(1);
        }
        ran
    }
}

impl Drop for HoldMeter {
    fn drop(&mut self) {
        // A client that ended under its guards: nobody knows how long they hold.
        self.stop();
    }
}
