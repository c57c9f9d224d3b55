//! What the program prints, and its exit codes. This file is the only one that prints.

pub(crate) mod break_text;
pub(crate) mod colour;
pub(crate) mod events;
pub(crate) mod exit_code;
pub(crate) mod failure;
pub(crate) mod holder_text;
pub(crate) mod leader_text;
pub(crate) mod message;
pub(crate) mod once_answer;
pub(crate) mod quorum_shortfall;
pub(crate) mod table;
pub(crate) mod time_text;
pub(crate) mod waiter_text;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::output::colour::may_colour;
use crate::output::message::Message;

/// What each message for people begins with.
const PREFIX: &str = "leasehold:";

/// Writes the messages of the program to stderr, because stdout belongs to the command.
///
/// On a terminal, one status line may follow the messages; it is wiped before anything else is
/// written. All clones write to the same place. A closed stderr is not an error: there is no reader.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    has_status: Arc<Mutex<bool>>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            has_status: Arc::default(),
        }
    }

    /// Writes a message as one line.
    pub(crate) fn print_message(&self, message: &Message<'_>) {
        let line = if self.json {
            Some(message.json().to_string())
        } else {
            message.text().map(|text| {
                let style = message.style().filter(|_| may_colour(&io::stderr()));
                let prefix = style.map_or(PREFIX.into(), |style| style.paint(PREFIX));
                format!("{prefix} {text}")
            })
        };
        if let Some(line) = line {
            self.write(&format!("{line}\n"), false);
        }
    }

    /// Whether a status line can be shown and refreshed.
    pub(crate) fn has_terminal(&self) -> bool {
        !self.json
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// Shows `message` as the status line, in place of the last one.
    pub(crate) fn show_status(&self, message: &Message<'_>) {
        if let Some(text) = message.text() {
            // A wrapped line could not be wiped. Cut it at the edge (DECAWM), and clear what the last
            // one left there (EL).
            self.write(&format!("\x1b[?7l{PREFIX} {text}\x1b[K\x1b[?7h"), true);
        }
    }

    /// Wipes the status line, if there is one.
    pub(crate) fn clear_status(&self) {
        self.write("", false);
    }

    fn write(&self, text: &str, is_status: bool) {
        let mut has_status = self
            .has_status
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let wipe = if *has_status { "\r\x1b[K" } else { "" };
        *has_status = is_status;
        let _ = io::stderr().write_all(format!("{wipe}{text}").as_bytes());
    }
}

/// Writes a result to stdout.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
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

/// Writes a result for programs to stdout, as one line.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    print(&format!("{value}\n"))
}
