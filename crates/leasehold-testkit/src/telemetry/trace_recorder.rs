use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use leasehold::store::locked;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, span};

/// Records every span and event of Leasehold, of every level, on the thread that it [watches](Self::watch).
#[derive(Clone, Debug, Default)]
pub struct TraceRecorder(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    spans: Vec<SeenSpan>,
    events: Vec<SeenEvent>,
    /// How many handles each span has.
    owners: Vec<usize>,
    /// The entered spans, the last one on top.
    entered: Vec<usize>,
}

/// A span.
#[derive(Clone, Debug)]
pub struct SeenSpan {
    /// Its name.
    pub name: &'static str,
    /// Its level.
    pub level: Level,
    /// The position of its parent among all spans.
    pub parent: Option<usize>,
    /// The names of all its fields, in order, with or without a value.
    pub declared: Vec<&'static str>,
    /// The last recorded values of its fields.
    pub fields: BTreeMap<&'static str, String>,
}

/// An event.
#[derive(Clone, Debug)]
pub struct SeenEvent {
    /// The position, among all spans, of the span that it is in.
    pub span: Option<usize>,
    /// Its level.
    pub level: Level,
    /// Its fields, including the message.
    pub fields: BTreeMap<&'static str, String>,
}

impl TraceRecorder {
    /// Returns a recorder that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches the calling thread until the returned guard is dropped.
    pub fn watch(&self) -> DefaultGuard {
        KEEPERS.get_or_init(|| [(); 2].map(|()| Dispatch::new(Self::new())));
        tracing::subscriber::set_default(self.clone())
    }

    /// Returns all spans, in the order in which they began.
    pub fn spans(&self) -> Vec<SeenSpan> {
        locked(&self.0).spans.clone()
    }

    /// Returns the spans of that name.
    pub fn named(&self, name: &str) -> Vec<SeenSpan> {
        let mut spans = self.spans();
        spans.retain(|span| span.name == name);
        spans
    }

    /// Returns all events, in order.
    pub fn events(&self) -> Vec<SeenEvent> {
        locked(&self.0).events.clone()
    }

    /// Returns whether any span is entered at this moment.
    pub fn is_within(&self) -> bool {
        !locked(&self.0).entered.is_empty()
    }

    /// Returns the names of the spans that have not ended. They may be entered again.
    pub fn open(&self) -> Vec<&'static str> {
        let log = locked(&self.0);
        let open = log.spans.iter().zip(&log.owners);
        let open = open.filter(|(_, owners)| **owners > 0);
        open.map(|(span, _)| span.name).collect()
    }

    /// Returns every value of every field that was ever recorded.
    pub fn values(&self) -> Vec<String> {
        let log = locked(&self.0);
        let spans = log.spans.iter().flat_map(|span| span.fields.values());
        let events = log.events.iter().flat_map(|event| event.fields.values());
        spans.chain(events).cloned().collect()
    }
}

/// While there is only one subscriber, a span or event that another thread reaches first is turned off for
/// all threads. Two unused subscribers that never end prevent that.
static KEEPERS: OnceLock<[Dispatch; 2]> = OnceLock::new();

fn index(id: &span::Id) -> usize {
    id.into_u64() as usize - 1
}

impl Subscriber for TraceRecorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("leasehold")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut log = locked(&self.0);
        let metadata = attributes.metadata();
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let parent = match attributes.parent() {
            Some(parent) => Some(index(parent)),
            None if attributes.is_contextual() => log.entered.last().copied(),
            None => None,
        };
        let span = SeenSpan {
            name: metadata.name(),
            level: *metadata.level(),
            parent,
            declared: metadata.fields().iter().map(|it| it.name()).collect(),
            fields: fields.0,
        };
        log.spans.push(span);
        log.owners.push(1);
        span::Id::from_u64(log.spans.len() as u64)
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        locked(&self.0).spans[index(id)].fields.extend(fields.0);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut log = locked(&self.0);
        let seen = SeenEvent {
            span: log.entered.last().copied(),
            level: *event.metadata().level(),
            fields: fields.0,
        };
        log.events.push(seen);
    }

    fn enter(&self, id: &span::Id) {
        locked(&self.0).entered.push(index(id));
    }

    fn clone_span(&self, id: &span::Id) -> span::Id {
        locked(&self.0).owners[index(id)] += 1;
        id.clone()
    }

    fn try_close(&self, id: span::Id) -> bool {
        let mut log = locked(&self.0);
        let owners = &mut log.owners[index(&id)];
        *owners -= 1;
        *owners == 0
    }

    fn exit(&self, id: &span::Id) {
        let left = locked(&self.0).entered.pop();
        assert_eq!(left, Some(index(id)), "spans are left in another order");
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
