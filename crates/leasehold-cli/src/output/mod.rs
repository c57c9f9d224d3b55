//! What the program prints, and its exit codes. This file is the only one that prints.

mod closed_stdout;
pub(crate) mod colour;
pub(crate) mod envelope;
pub(crate) mod events;
pub(crate) mod exit_code;
#[cfg(test)]
pub(crate) mod expect_finding;
pub(crate) mod failure;
pub(crate) mod finding;
pub(crate) mod held_warnings;
pub(crate) mod locks;
pub(crate) mod message;
pub(crate) mod once_answer;
pub(crate) mod outage;
pub(crate) mod quorum_shortfall;
pub(crate) mod report;
pub(crate) mod table;
pub(crate) mod time_text;
pub(crate) mod verbosity;
mod writer;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::background::thread;
use leasehold::store::{is_printable, locked, printable};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::output::closed_stdout::stdout_was_closed;
use crate::output::colour::may_colour;
use crate::output::envelope::stamped;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::held_warnings::{HeldWarnings, ServerWarning};
use crate::output::message::Message;
use crate::output::verbosity::Verbosity;
use crate::output::writer::Writer;
use crate::readiness::Readiness;

/// What each message for people begins with.
const PREFIX: &str = "leasehold:";

/// Writes the messages of the program to stderr, because stdout belongs to the command.
///
/// On a terminal, one status line may follow the messages; it is wiped before anything else is
/// written. All clones write to the same place. No call waits for the reader of stderr except
/// [`flush`](Self::flush).
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    verbosity: Verbosity,
    /// Whether people saw that the program waits, so that they see how that ends.
    has_waited: Arc<AtomicBool>,
    writer: Writer,
    /// Writes the events as JSON, apart from the messages for people.
    events: Option<Writer>,
    /// Shows other programs whether the lock is held.
    readiness: Option<Arc<Readiness>>,
    held: Arc<Mutex<HeldWarnings>>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let dropped_line = match json {
            true => |dropped| line(&Message::Warning(&dropped_text(dropped)), true),
            false => |dropped| line(&Message::Warning(&dropped_text(dropped)), false),
        };
        Self {
            json,
            verbosity: Verbosity::Normal,
            has_waited: Arc::default(),
            writer: Writer::new(None, dropped_line),
            events: None,
            readiness: None,
            held: Arc::default(),
        }
    }

    /// The same output, which says this much.
    pub(crate) fn with_verbosity(mut self, verbosity: Verbosity) -> Self {
        self.verbosity = verbosity;
        self
    }

    /// The same output, which also appends its events to this file as JSON.
    pub(crate) fn with_events(mut self, path: &Path) -> Result<Self, Failure> {
        let opened = File::options().append(true).create(true).open(path);
        let file = opened.map_err(|error| {
            let text = format!("cannot write events to {}: {error}", path.display());
            Failure::new(ExitCode::IO, text)
        })?;
        let dropped_line = |dropped| line(&Message::Warning(&dropped_text(dropped)), true);
        self.events = Some(Writer::new(Some(file), dropped_line));
        Ok(self)
    }

    /// The same output, which also shows other programs whether the lock is held.
    pub(crate) fn with_readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = Some(Arc::new(readiness));
        self
    }

    /// Shows other programs that the lock is held.
    pub(crate) fn mark_ready(&self, lock: &str, fence: Option<&Value>) {
        let fence = fence.map(Value::to_string).unwrap_or_default();
        self.mark(|readiness| readiness.ready(lock, &fence));
    }

    /// Shows other programs that this one ends.
    pub(crate) fn mark_ended(&self) {
        self.mark(Readiness::end);
    }

    /// Shows other programs what the message means for them.
    fn mark_message(&self, message: &Message<'_>) {
        self.mark(|readiness| match message {
            Message::Lost { lock, reason } => readiness.lost(lock, reason),
            Message::Released { .. } | Message::StillHeld { .. } => readiness.withdraw(),
            Message::Waiting(_) | Message::Campaigns { .. } | Message::Error(_) => {
                readiness.status(&printable(&message.text().unwrap_or_default()));
                Ok(())
            }
            _ => Ok(()),
        });
    }

    fn mark(&self, change: impl Fn(&Readiness) -> Result<(), String>) {
        if let Some(Err(problem)) = self.readiness.as_deref().map(change) {
            self.write(&Message::Warning(&problem));
        }
    }

    /// Whether the user wants to see only what is wrong.
    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Writes a message as one line.
    pub(crate) fn print_message(&self, message: &Message<'_>) {
        self.print_held(Some(message));
        self.mark_message(message);
        self.write(message);
    }

    /// Prints a warning about a server before the next message, unless that is an error with the same reason.
    pub(crate) fn hold_warning(&self, warning: ServerWarning) {
        let mut held = locked(&self.held);
        let text = held.hold(warning);
        self.write_warnings(text);
    }

    /// Holds warnings about the servers of a quorum, too, until the next message.
    pub(crate) fn begin_holding_warnings(&self) {
        locked(&self.held).begin();
    }

    /// Prints the warnings that are held, and holds none from now on.
    pub(crate) fn end_holding_warnings(&self) {
        let mut held = locked(&self.held);
        self.write_warnings(held.end());
    }

    fn print_held(&self, next: Option<&Message<'_>>) {
        let mut held = locked(&self.held);
        self.write_warnings(held.release(next));
    }

    /// Writes warnings about servers. If the command fails because of them, its error says so.
    fn write_warnings(&self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.write(&Message::ServerWarning(&text));
        }
    }

    fn write(&self, message: &Message<'_>) {
        if let Some(events) = &self.events {
            events.write(&line(message, true));
        }
        self.warn_of_lost_events();
        if !self.json && !self.is_shown(message) {
            return;
        }
        let line = line(message, self.json);
        if !line.is_empty() {
            self.writer.write(&line);
        }
    }

    /// Warns once if the events cannot be written.
    fn warn_of_lost_events(&self) {
        if let Some(error) = self.events.as_ref().and_then(Writer::take_failure) {
            let text = format!("events are lost, because --json-file cannot be written: {error}");
            self.write(&Message::Warning(&text));
        }
    }

    /// Whether people see the message.
    fn is_shown(&self, message: &Message<'_>) -> bool {
        let has_waited = self.has_waited.load(Ordering::Relaxed);
        let is_terminal = io::stderr().is_terminal();
        let is_shown = message.is_shown_at(self.verbosity, is_terminal, has_waited);
        if is_shown && matches!(message, Message::Waiting(_)) {
            self.has_waited.store(true, Ordering::Relaxed);
        }
        is_shown
    }

    /// Whether a status line can be shown and refreshed.
    pub(crate) fn has_terminal(&self) -> bool {
        !self.json
            && self.verbosity != Verbosity::Quiet
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// Shows `message` as the status line, in place of the last one.
    pub(crate) fn show_status(&self, message: &Message<'_>) {
        self.print_held(Some(message));
        self.mark_message(message);
        self.has_waited.store(true, Ordering::Relaxed);
        if let Some(text) = message.status_line() {
            let text = printable(&text);
            // A wrapped line could not be wiped. Cut it at the edge (DECAWM), and clear what the last
            // one left there (EL).
            let status = format!("\x1b[?7l{PREFIX} {text}\x1b[K\x1b[?7h");
            self.writer.show_status(&status);
        }
    }

    /// Wipes the status line, if there is one.
    pub(crate) fn clear_status(&self) {
        self.writer.clear_status();
    }

    /// Waits until the messages are written, but not long: its reader may be stalled. Call it before
    /// something else writes to stderr, and before the process stops or ends.
    pub(crate) fn flush(&self) {
        self.print_held(None);
        if let Some(events) = &self.events {
            events.flush(FLUSH_MAX);
        }
        self.warn_of_lost_events();
        self.writer.flush(FLUSH_MAX);
    }
}

/// How long the program waits for the reader of stderr.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The message with its end of line; nothing if it is not for this kind of reader.
fn line(message: &Message<'_>, json: bool) -> String {
    if json {
        return format!("{}\n", json_text(&message.json()));
    }
    let Some(text) = message.text() else {
        return String::new();
    };
    // Servers and other users wrote a part of some messages.
    let text = printable(&text);
    let style = message.style().filter(|_| may_colour(&io::stderr()));
    let prefix = style.map_or(PREFIX.into(), |style| style.paint(PREFIX));
    // A log keeps its lines, so they need the time.
    let time = match message.has_time() && !io::stderr().is_terminal() {
        true => format!("{} ", time_text::timestamp(SystemClock.wall())),
        false => String::new(),
    };
    format!("{prefix} {time}{text}\n")
}

fn dropped_text(dropped: u64) -> String {
    let messages = if dropped == 1 {
        "message was"
    } else {
        "messages were"
    };
    format!("{dropped} {messages} dropped, because stderr was not read")
}

/// Refuses a closed stdout for `what`, which would be lost. Call it before anything is acquired.
pub(crate) fn require_stdout(what: &str) -> Result<(), Failure> {
    if !stdout_was_closed() {
        return Ok(());
    }
    let text = format!(
        "stdout is closed, so {what} would be lost; open it, or use --handle-file (to drop {what}, use \
         > /dev/null)"
    );
    Err(Failure::new(ExitCode::IO, text))
}

/// Writes a result to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_next(text).map(drop)
}

/// Writes one of several results to stdout. Returns whether they still have a reader: one that has gone, such as `head`, has seen
/// what it wanted.
pub(crate) fn print_next(text: &str) -> Result<bool, Failure> {
    match write(text) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::of_stdout(&error)),
    }
}

/// Returns false if the system knows that stdout has no reader. Writes nothing.
pub(crate) fn has_reader() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    let is_gone = |it: &PollFd<'_>| it.revents().is_some_and(|seen| seen.intersects(gone));
    poll(&mut polled, PollTimeout::ZERO).is_err() || !polled.iter().any(is_gone)
}

/// Writes to stdout what its reader must get.
pub(crate) fn write(text: &str) -> io::Result<()> {
    if stdout_was_closed() && !text.is_empty() {
        let text = "it is closed; to drop the output, use > /dev/null";
        return Err(io::Error::other(text));
    }
    pass_on(Stream::Stdout, text.as_bytes())
}

/// One of the two streams that a command writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Passes the output of a command on to `stream`.
pub(crate) fn pass_on(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.flush()
        }
        Stream::Stderr => io::stderr().write_all(bytes),
    }
}

/// Writes the recorded output of a command. A closed stderr is not an error: there is no reader.
pub(crate) fn replay(stdout: &[u8], stderr: &[u8]) -> io::Result<()> {
    let written = pass_on(Stream::Stdout, stdout);
    let _ = pass_on(Stream::Stderr, stderr);
    written
}

/// Runs `writing`, which may block on a stream, on a thread of its own. Later output of this program
/// waits for it. If the process ends before, its output is lost.
///
/// Cancel safe: the thread writes to the end.
pub(crate) async fn apart(
    writing: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let (done, written) = oneshot::channel();
    thread("leasehold-out", move || drop(done.send(writing()))).map_err(io::Error::other)?;
    written
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Writes a result for programs to stdout, as one line.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    print(&json_line(value))
}

/// A result for programs, as one line.
pub(crate) fn json_line(value: &Value) -> String {
    format!("{}\n", json_text(&stamped(value.clone())))
}

/// The text of `value`, in which a terminal shows every character: JSON may escape any of them.
fn json_text(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().all(is_printable) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_printable(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

#[cfg(test)]
mod json_page_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_characters_are_escaped_in_json() {
        let value = serde_json::json!({"value": "a\u{202e}b\u{e0041}\u{9b}ü\n"});
        let text = json_text(&value);
        assert_eq!(text, r#"{"value":"a\u202eb\udb40\udc41\u009bü\n"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
