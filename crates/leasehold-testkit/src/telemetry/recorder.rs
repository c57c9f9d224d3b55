use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use leasehold::store::locked;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// Keeps every value of every metric that was created within its [`scope`](Self::scope), on whichever
/// thread the value is recorded.
#[derive(Clone, Debug, Default)]
pub struct TestRecorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    series: BTreeMap<Series, Arc<Values>>,
    described: BTreeMap<String, Option<Unit>>,
}

/// A name with its labels.
type Series = (String, BTreeMap<String, String>);

/// The recorded values, in order. The value of a counter or a gauge is their sum.
#[derive(Debug, Default)]
struct Values(Mutex<Vec<f64>>);

impl TestRecorder {
    /// Returns a recorder without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `build`, and records all metrics that it creates.
    pub fn scope<T>(&self, build: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(self, build)
    }

    /// Returns all values of a histogram, in order, from the series that have these labels.
    pub fn samples(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let recorded = locked(&self.0);
        let matching = recorded.series.iter().filter(|((series, all), _)| {
            let has =
                |(label, value): &(&str, &str)| all.get(*label).map(String::as_str) == Some(*value);
            series == name && labels.iter().all(has)
        });
        matching.flat_map(|(_, values)| values.all()).collect()
    }

    /// Returns the value of a counter or a gauge, summed over the series that have these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.samples(name, labels).iter().sum()
    }

    /// Returns the names, each with its labels, that have at least one value.
    pub fn recorded_series(&self) -> BTreeSet<Series> {
        let recorded = locked(&self.0);
        let non_empty = recorded
            .series
            .iter()
            .filter(|(_, values)| !values.all().is_empty());
        non_empty.map(|(series, _)| series.clone()).collect()
    }

    /// Returns the names, each with its labels, that were registered.
    pub fn asked_for(&self) -> BTreeSet<Series> {
        locked(&self.0).series.keys().cloned().collect()
    }

    /// Returns the names that were described, each with its unit.
    pub fn units(&self) -> BTreeMap<String, Option<Unit>> {
        locked(&self.0).described.clone()
    }

    fn values(&self, key: &Key) -> Arc<Values> {
        let labels = key.labels();
        let labels = labels.map(|label| (label.key().to_owned(), label.value().to_owned()));
        let series = (key.name().to_owned(), labels.collect());
        Arc::clone(locked(&self.0).series.entry(series).or_default())
    }

    fn note_unit(&self, name: &KeyName, unit: Option<Unit>) {
        locked(&self.0)
            .described
            .insert(name.as_str().to_owned(), unit);
    }
}

impl Recorder for TestRecorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.note_unit(&name, unit);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.note_unit(&name, unit);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.note_unit(&name, unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.values(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.values(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.values(key))
    }
}

impl Values {
    fn tell(&self, value: f64) {
        locked(&self.0).push(value);
    }

    fn all(&self) -> Vec<f64> {
        locked(&self.0).clone()
    }

    /// Records the difference to the present value.
    fn set(&self, value: f64) {
        let now: f64 = self.all().iter().sum();
        self.tell(value - now);
    }
}

impl CounterFn for Values {
    fn increment(&self, value: u64) {
        self.tell(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.set(value as f64);
    }
}

impl GaugeFn for Values {
    fn increment(&self, value: f64) {
        self.tell(value);
    }

    fn decrement(&self, value: f64) {
        self.tell(-value);
    }

    fn set(&self, value: f64) {
        Self::set(self, value);
    }
}

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.tell(value);
    }
}
