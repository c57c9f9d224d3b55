//! The only file that prints.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::message::Message;

/// Where the program's own messages go: stderr, for stdout belongs to the command.
///
/// On a terminal one status line may stand below the messages; it is wiped before anything else is
/// written. All clones write to the same place. A closed stderr is no error: nobody listens.
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

    /// Writes one message, as one line.
    pub(crate) fn say(&self, message: &Message<'_>) {
        let line = if self.json {
            Some(message.json().to_string())
        } else {
            message.text().map(|text| format!("leasehold: {text}"))
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
            // A line that wrapped could not be wiped: cut it at the edge (DECAWM), where its last
            // character would stay (EL).
            self.write(&format!("\x1b[?7lleasehold: {text}\x1b[K\x1b[?7h"), true);
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

/// Whether what is printed may be in colour: on a terminal, unless the user has had enough of it
/// (<https://no-color.org>).
pub(crate) fn is_in_colour() -> bool {
    let says = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    io::stdout().is_terminal()
        && says("NO_COLOR").is_none()
        && says("TERM").is_none_or(|term| term != "dumb")
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

/// Writes to `stream` what a command wrote to it.
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

/// Writes what a command once wrote. A closed stderr is no error: nobody listens.
pub(crate) fn replay(stdout: &[u8], stderr: &[u8]) -> io::Result<()> {
    let written = pass_on(Stream::Stdout, stdout);
    let _ = pass_on(Stream::Stderr, stderr);
    written
}

/// Writes a result for programs to stdout, as one line.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    print(&format!("{value}\n"))
}
