use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::message::Message;
use crate::output::Output;

/// Shows the library's warnings, and when their reason is over, as messages of the program.
#[derive(Debug)]
pub(crate) struct Events {
    output: Output,
}

impl Events {
    /// Shows what is reported from now on through `output`.
    pub(crate) fn show_on(output: &Output) {
        let output = output.clone();
        // Only the first subscriber of a process counts, and this is the only one.
        let _ = tracing::subscriber::set_global_default(Self { output });
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && metadata.target().starts_with("leasehold")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let is_warning = *event.metadata().level() <= Level::WARN;
        // A loss has a message of its own, which says what becomes of the command.
        if is_warning && line.message != LOSS {
            self.output.say(&Message::Warning(&line.text()));
        } else if RECOVERIES.contains(&&*line.message) {
            self.output.say(&Message::Notice(&line.text()));
        }
    }

    // Spans are not enabled, so that nothing below is ever called with one.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// An event as one line: its message, then its fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn text(&self) -> String {
        match (self.message.is_empty(), self.fields.is_empty()) {
            (_, true) => self.message.clone(),
            (true, false) => self.fields.clone(),
            (false, false) => format!("{} ({})", self.message, self.fields),
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else {
            let comma = if self.fields.is_empty() { "" } else { ", " };
            let _ = write!(self.fields, "{comma}{}: {value:?}", field.name());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// What the library reports when something that it warned of is over.
const RECOVERIES: [&str; 3] = [
    "renewals succeed again",
    "member answers again",
    "member counts again",
];

/// What the keeper reports when a guard is lost.
const LOSS: &str = "lost";
