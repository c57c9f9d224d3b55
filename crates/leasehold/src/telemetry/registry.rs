use std::marker::PhantomData;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, Unit};

use super::labels::LabelValue;
use super::metric::{METRICS, Metric, MetricKind};

/// Registers metrics of one store at the recorder. Without a recorder they do nothing, and cost a branch.
pub(super) struct Registry<'a> {
    recorder: &'a dyn Recorder,
    store: Arc<str>,
}

/// The same metric for each value of its label.
#[derive(Debug)]
pub(super) struct Each<W, H> {
    handles: Box<[H]>,
    words: PhantomData<W>,
}

impl<W: LabelValue, H> Each<W, H> {
    pub(super) fn of(&self, word: W) -> &H {
        &self.handles[word.index()]
    }
}

impl<'a> Registry<'a> {
    /// Describes all metrics to the recorder. Describing them again changes nothing.
    pub(super) fn new(recorder: &'a dyn Recorder, store: &str) -> Self {
        for metric in METRICS {
            document(recorder, metric);
        }
        Self {
            recorder,
            store: store.into(),
        }
    }

    pub(super) fn counter(&self, metric: &Metric) -> Counter {
        let key = self.key(metric, None);
        self.recorder.register_counter(&key, &METADATA)
    }

    pub(super) fn gauge(&self, metric: &Metric) -> Gauge {
        let key = self.key(metric, None);
        self.recorder.register_gauge(&key, &METADATA)
    }

    pub(super) fn histogram(&self, metric: &Metric) -> Histogram {
        let key = self.key(metric, None);
        self.recorder.register_histogram(&key, &METADATA)
    }

    pub(super) fn counters<W: LabelValue>(&self, metric: &Metric) -> Each<W, Counter> {
        self.each(metric, |key| self.recorder.register_counter(key, &METADATA))
    }

    pub(super) fn gauges<W: LabelValue>(&self, metric: &Metric) -> Each<W, Gauge> {
        self.each(metric, |key| self.recorder.register_gauge(key, &METADATA))
    }

    pub(super) fn histograms<W: LabelValue>(&self, metric: &Metric) -> Each<W, Histogram> {
        self.each(metric, |key| {
            self.recorder.register_histogram(key, &METADATA)
        })
    }

    fn each<W: LabelValue, H>(&self, metric: &Metric, register: impl Fn(&Key) -> H) -> Each<W, H> {
        let handle = |word: &&'static str| register(&self.key(metric, Some(word)));
        Each {
            handles: W::VALUES.iter().map(handle).collect(),
            words: PhantomData,
        }
    }

    fn key(&self, metric: &Metric, word: Option<&'static str>) -> Key {
        let mut labels = vec![Label::new("store", Arc::clone(&self.store))];
        if let (Some((label, _)), Some(word)) = (metric.label, word) {
            labels.push(Label::from_static_parts(label, word));
        }
        Key::from_parts(metric.name, labels)
    }
}

fn document(recorder: &dyn Recorder, metric: &Metric) {
    let name = KeyName::from_const_str(metric.name);
    let text = metric.description.into();
    match metric.kind {
        MetricKind::Histogram => recorder.describe_histogram(name, Some(Unit::Seconds), text),
        MetricKind::Counter => recorder.describe_counter(name, Some(Unit::Count), text),
        MetricKind::Gauge => recorder.describe_gauge(name, Some(Unit::Count), text),
    }
}

/// For recorders that leave some metrics out.
static METADATA: Metadata<'static> = Metadata::new("leasehold", Level::INFO, Some("leasehold"));
