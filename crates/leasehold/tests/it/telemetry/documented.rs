//! The manual, the table in the code and what a client really reports: all three say the same.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::telemetry::{LogEvent, METRICS, Metric, MetricKind};

use super::{losses, metrics};
use crate::telemetry::metered_fixture::MeteredFixture;

const MANUAL: &str = include_str!("../../../src/manual/observing.rs");

/// The rows of a table whose first cell begins so, as cells without backticks.
pub(super) fn rows(begin: &str) -> Vec<Vec<String>> {
    let lines = MANUAL
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "));
    let cells = |line: &str| {
        let cells = line.trim_end_matches('|').split(" | ");
        cells
            .map(|cell| cell.replace('`', "").trim().to_owned())
            .collect()
    };
    lines
        .map(cells)
        .filter(|row: &Vec<String>| row[0].starts_with(begin))
        .collect()
}

fn row_of(metric: &Metric) -> Vec<String> {
    let (kind, unit) = match metric.kind {
        MetricKind::Histogram => ("histogram", "seconds"),
        MetricKind::Counter => ("counter", "1"),
        MetricKind::Gauge => ("gauge", "1"),
    };
    let label = match metric.label {
        Some((label, values)) => format!("{label}: {}", values.join(", ")),
        None => "none".to_owned(),
    };
    [metric.name, kind, unit, &label].map(str::to_owned).into()
}

#[test]
fn manual_lists_every_metric_and_label_value() {
    let documented: Vec<Vec<String>> = rows("leasehold_")
        .into_iter()
        .map(|row| row[..4].to_vec())
        .collect();
    let known: Vec<Vec<String>> = METRICS.iter().map(row_of).collect();
    assert_eq!(documented, known);
    let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len());
}

#[tokio::test(start_paused = true)]
async fn every_label_value_is_produced() {
    let mut recorded = BTreeSet::new();
    for recorder in [
        metrics::granted_and_released().await,
        metrics::contended().await,
        metrics::given_up_waits().await,
        metrics::failures().await,
        metrics::renewed().await,
        metrics::handed_on().await,
        metrics::releases().await,
        metrics::stores(),
        losses::unreachable().await,
        losses::expired().await,
        losses::paused().await,
        losses::taken().await,
        losses::gone().await,
        losses::broken().await,
        losses::max_hold().await,
        losses::given_up().await,
        losses::closed().await,
    ] {
        recorded.extend(
            recorder
                .recorded_series()
                .into_iter()
                .map(|(name, mut labels)| {
                    assert!(labels.remove("store").is_some(), "{name} names no store");
                    (name, labels)
                }),
        );
    }
    let mut documented = BTreeSet::new();
    for metric in METRICS {
        let none = vec![BTreeMap::new()];
        let labels = metric.label.map_or(none, |(label, values)| {
            let one = |value: &&str| BTreeMap::from([(label.to_owned(), (*value).to_owned())]);
            values.iter().map(one).collect()
        });
        let series = labels.into_iter().map(|it| (metric.name.to_owned(), it));
        documented.extend(series);
    }
    assert_eq!(recorded, documented);
}

#[tokio::test(start_paused = true)]
async fn metrics_have_units_and_no_lock_names() {
    let metered = MeteredFixture::new();
    // Also what is asked for only when a lock is taken.
    let _recording = ::metrics::set_default_local_recorder(&metered.recorder);
    let guard = metered
        .fixture
        .client
        .lock("a-name-of-a-lock")
        .acquire()
        .await;
    drop(guard);
    metered.fixture.settle().await;
    let described = metered.recorder.units();
    let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(described.keys().collect::<Vec<_>>(), names);
    for metric in METRICS {
        let unit = described[metric.name].expect("a unit").as_str();
        let seconds = metric.kind == MetricKind::Histogram;
        assert_eq!(unit, if seconds { "seconds" } else { "count" });
    }
    let store = metered.fixture.client.to_string();
    for (name, labels) in metered.recorder.asked_for() {
        assert_eq!(labels["store"], store, "{name}");
        assert!(labels.values().all(|value| !value.contains("a-name")));
    }
}

#[test]
fn manual_lists_every_event() {
    for event in LogEvent::ALL {
        let cell = format!("`{}`", event.as_str());
        assert!(MANUAL.contains(&cell), "{cell}");
        assert_eq!(LogEvent::parse(event.as_str()), Some(event));
    }
}
