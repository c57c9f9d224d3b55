use std::fmt::{self, Write as _};

use leasehold::telemetry::LogEvent;
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::output::Output;
use crate::output::held_warnings::ServerWarning;
use crate::output::message::Message;

/// Prints the warnings of the library, and the end of their cause, as messages of the program.
#[derive(Debug)]
pub(crate) struct Events {
    output: Output,
}

impl Events {
    /// Prints all events from now on through `output`.
    pub(crate) fn subscribe(output: &Output) {
        let output = output.clone();
        // Only the first subscriber of a process is used, and this is the only one.
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
        let mut line = EventLine::default();
        event.record(&mut line);
        let is_warning = *event.metadata().level() <= Level::WARN;
        match line.event {
            // A loss has a separate message, which mentions the command.
            Some(LogEvent::Lost) => {}
            Some(LogEvent::RenewalsSucceed | LogEvent::MemberHasVote | LogEvent::MemberAnswers) => {
                self.output.print_message(&Message::Notice(&line.text()));
            }
            Some(event @ (LogEvent::MemberUnusable | LogEvent::MemberHasNoVote)) => {
                let is_only = event == LogEvent::MemberUnusable;
                self.output.hold_warning(line.into_warning(is_only));
            }
            _ if is_warning => self.output.print_message(&Message::Warning(&line.text())),
            _ => {}
        }
    }

    // Spans are not enabled, so none of the following is ever called.
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
struct EventLine {
    event: Option<LogEvent>,
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl EventLine {
    /// `NAME has a vote again`, from an event about a member; of other events the message, then the fields in
    /// parentheses.
    fn text(mut self) -> String {
        let mut text = match self.member_and_state() {
            Some((member, state)) => format!("{member} {state}"),
            None => std::mem::take(&mut self.message),
        };
        let reason = self.take("reason").or_else(|| self.take("error"));
        let fields: Vec<_> = self
            .fields
            .iter()
            .map(|(name, it)| format!("{name}: {it}"))
            .collect();
        if !fields.is_empty() {
            text += &format!(" ({})", fields.join(", "));
        }
        match reason {
            Some(reason) => format!("{text}: {reason}"),
            None => text,
        }
    }

    /// The member, and its state such as `has no vote for 1m 1s`, from an event about a member.
    fn member_and_state(&mut self) -> Option<(String, String)> {
        let state = self.event.and_then(state_of_a_member)?;
        let member = self.take("member").unwrap_or_else(|| "a server".into());
        let span = self.take("again").filter(|span| !span.is_empty());
        let span = span.map_or(String::new(), |span| format!(" for {span}"));
        Some((member, format!("{state}{span}")))
    }

    fn into_warning(mut self, is_only: bool) -> ServerWarning {
        let (server, state) = self.member_and_state().unwrap_or_default();
        let reason = self.take("reason").unwrap_or_default();
        ServerWarning {
            server,
            is_only,
            state,
            reason,
        }
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let index = self.fields.iter().position(|(it, _)| *it == name)?;
        Some(self.fields.remove(index).1)
    }
}

impl Visit for EventLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string cannot fail.
            let _ = write!(self.message, "{value:?}");
        } else {
            self.fields.push((field.name(), format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "event" => self.event = LogEvent::parse(value),
            _ => self.record_debug(field, &format_args!("{value}")),
        }
    }
}

/// Returns the words for what an event says about a member, if it is about one.
fn state_of_a_member(event: LogEvent) -> Option<&'static str> {
    match event {
        LogEvent::MemberHasNoVote => Some("has no vote"),
        LogEvent::MemberHasVote => Some("has a vote again"),
        LogEvent::MemberUnusable => Some("cannot be used"),
        LogEvent::MemberAnswers => Some("answers again"),
        _ => None,
    }
}
