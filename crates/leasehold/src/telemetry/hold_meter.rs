use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client_metrics::ClientMetrics;
use super::labels::{HoldEnd, Loss};
use super::lock_events::LockEvent;
use crate::env::clock::BootInstant;
use crate::types::{Fence, Key, LostReason};

/// One hold, from its grant until it is released or lost. The first of these ends it, and is recorded and
/// reported; anything later is ignored.
#[derive(Debug)]
pub(crate) struct HoldMeter {
    metrics: Arc<ClientMetrics>,
    began: BootInstant,
    runs: AtomicBool,
}

impl HoldMeter {
    pub(crate) fn begin(
        metrics: &Arc<ClientMetrics>,
        (key, fence): (&Key, Fence),
        began: BootInstant,
    ) -> Self {
        metrics.held.increment(1);
        metrics.events.send(|| LockEvent::Acquired {
            key: key.clone(),
            fence,
        });
        Self {
            metrics: Arc::clone(metrics),
            began,
            runs: AtomicBool::new(true),
        }
    }

    /// Records that its holder released or handed on the lock at `now`.
    pub(crate) fn end(&self, (key, fence): (&Key, Fence), end: HoldEnd, now: BootInstant) {
        if self.stop() {
            self.metrics.holds.of(end).record(now.since(self.began));
            self.metrics.events.send(|| {
                let key = key.clone();
                match end {
                    HoldEnd::HandedOn => LockEvent::Detached { key, fence },
                    _ => LockEvent::Released { key, fence },
                }
            });
        }
    }

    /// Records that the lock was lost at `now` or earlier: at its deadline, if that was before `now`.
    pub(crate) fn lose(
        &self,
        (key, fence): (&Key, Fence),
        reason: LostReason,
        deadline: Option<BootInstant>,
        now: BootInstant,
    ) {
        let Some(loss) = Loss::of(reason) else {
            return;
        };
        if self.stop() {
            let end = deadline.map_or(now, |deadline| deadline.min(now));
            let held = end.since(self.began);
            self.metrics.holds.of(HoldEnd::Lost).record(held);
            self.metrics.lost.of(loss).increment(1);
            self.metrics.events.send(|| LockEvent::Lost {
                key: key.clone(),
                fence,
                reason,
            });
        }
    }

    /// Returns `false` if the hold had already ended.
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
        // The client ended before its guards: how long they hold their locks is unknown.
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Duration;

    use leasehold_testkit::telemetry::TestRecorder;

    use super::*;
    use crate::telemetry::{HELD, HOLD, LOST};

    const BEGAN: BootInstant = BootInstant::from_nanos(0);

    type End = fn(&HoldMeter, BootInstant);

    fn lock() -> (&'static Key, Fence) {
        static KEY: LazyLock<Key> = LazyLock::new(|| Key::new("deploy").unwrap());
        (&KEY, Fence::new(7).unwrap())
    }

    fn begun() -> (TestRecorder, HoldMeter) {
        let recorder = TestRecorder::new();
        let metrics = recorder.scope(|| ClientMetrics::new("a store"));
        let meter = HoldMeter::begin(&Arc::new(metrics), lock(), BEGAN);
        assert_eq!(recorder.sum(HELD.name, &[]), 1.0);
        (recorder, meter)
    }

    #[test]
    fn only_the_first_end_is_recorded() {
        let ends: [(&str, End); 3] = [
            ("released", |it, now| it.end(lock(), HoldEnd::Released, now)),
            ("handed_on", |it, now| {
                it.end(lock(), HoldEnd::HandedOn, now);
            }),
            ("lost", |it, now| {
                it.lose(lock(), LostReason::Gone, None, now);
            }),
        ];
        let at = |seconds| BEGAN + Duration::from_secs(seconds);
        for (first, end) in ends {
            for (next, end_again) in ends {
                let (recorder, meter) = begun();
                end(&meter, at(1));
                end_again(&meter, at(2));
                drop(meter);
                let samples = |end| recorder.samples(HOLD.name, &[("end", end)]);
                assert_eq!(samples(first), [1.0], "{first}, then {next}");
                assert_eq!(recorder.samples(HOLD.name, &[]).len(), 1);
                assert_eq!(recorder.sum(HELD.name, &[]), 0.0);
                let lost = recorder.sum(LOST.name, &[]);
                assert_eq!(lost == 1.0, first == "lost", "{first}, then {next}");
            }
        }
    }

    #[test]
    fn dropped_meter_records_no_end() {
        let (recorder, meter) = begun();
        meter.lose(lock(), LostReason::Forked, None, BEGAN);
        assert_eq!(recorder.sum(HELD.name, &[]), 1.0, "a child counts nothing");
        drop(meter);
        assert_eq!(recorder.sum(HELD.name, &[]), 0.0);
        assert!(recorder.samples(HOLD.name, &[]).is_empty());
        assert!(recorder.samples(LOST.name, &[]).is_empty());
    }
}
