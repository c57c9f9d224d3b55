use std::time::Duration;

use leasehold::Client;
use leasehold::telemetry::{LOST, METRICS, Metric};
use leasehold_testkit::telemetry::TestRecorder;

use crate::fixture::Fixture;

/// A fixture whose metrics are recorded.
pub(super) struct MeteredFixture {
    pub(super) recorder: TestRecorder,
    pub(super) fixture: Fixture,
}

impl MeteredFixture {
    pub(super) fn new() -> Self {
        let recorder = TestRecorder::new();
        let fixture = recorder.scope(Fixture::new);
        Self { recorder, fixture }
    }

    /// Another client of the same store, recorded too.
    pub(super) fn other_client(&self) -> Client {
        self.recorder.scope(|| self.fixture.other_client())
    }

    /// Returns the samples of a histogram whose label has this value.
    pub(super) fn spans(&self, metric: &Metric, value: &str) -> Vec<Duration> {
        let values = self.recorder.samples(metric.name, &labels(metric, value));
        values.into_iter().map(Duration::from_secs_f64).collect()
    }

    /// Returns the sum of a counter or a gauge whose label has this value.
    pub(super) fn sum(&self, metric: &Metric, value: &str) -> f64 {
        self.recorder.sum(metric.name, &labels(metric, value))
    }

    /// Returns all metrics that are not zero or empty, as `name value count`, in order. The count of
    /// a histogram is the number of its samples.
    pub(super) fn counts(&self, metrics: &[Metric]) -> Vec<String> {
        let mut lines = Vec::new();
        for metric in metrics {
            let values = metric.label.map_or(&[""][..], |(_, values)| values);
            for value in values {
                let count = if metric.name.ends_with("_seconds") {
                    self.spans(metric, value).len() as f64
                } else {
                    self.sum(metric, value)
                };
                if count != 0.0 {
                    let name = metric.name.trim_start_matches("leasehold_");
                    lines.push(format!("{name} {value} {count}").replace("  ", " "));
                }
            }
        }
        lines
    }

    /// As [`counts`](Self::counts), of all metrics but that of the members.
    pub(super) fn all_counts(&self) -> Vec<String> {
        let mut metrics = METRICS.to_vec();
        metrics.retain(|metric| metric.name != leasehold::telemetry::MEMBERS.name);
        self.counts(&metrics)
    }

    pub(super) fn assert_lost_only(&self, reason: &str) {
        assert_eq!(self.counts(&[LOST]), [format!("lost_total {reason} 1")]);
    }
}

fn labels<'a>(metric: &Metric, value: &'a str) -> Vec<(&'static str, &'a str)> {
    let label = metric.label.filter(|_| !value.is_empty());
    label.iter().map(|(label, _)| (*label, value)).collect()
}
