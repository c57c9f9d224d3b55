//! What a client logs, as it happens.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::store::locked;
use leasehold::{Error, ErrorKind};

use crate::programs::history::{Event, HoldNumber, What};

/// The events of a client.
pub(crate) struct Log {
    client: usize,
    holds: AtomicU32,
    to: Mutex<Box<dyn Write + Send>>,
}

impl Log {
    pub(crate) fn new(client: usize, to: impl Write + Send + 'static) -> Self {
        Self {
            client,
            holds: AtomicU32::new(0),
            to: Mutex::new(Box::new(to)),
        }
    }

    pub(super) fn note(&self, what: What) {
        self.write(&Event::now(self.client, what));
    }

    pub(super) fn write(&self, event: &Event) {
        let line = serde_json::to_string(event).expect("an event has a text form");
        // The program that reads may be gone.
        let _ = writeln!(locked(&self.to), "{line}");
    }

    pub(super) fn failed(&self, call: &str, error: &Error) {
        self.note_failure(call, error, is_unexpected(error));
    }

    /// The clients reach the servers at different addresses, so a lost handle looks like one of another store.
    pub(super) fn handle_failed(&self, call: &str, error: &Error) {
        let is_unexpected = is_unexpected(error) && error.kind() != ErrorKind::InvalidInput;
        self.note_failure(call, error, is_unexpected);
    }

    fn note_failure(&self, call: &str, error: &Error, is_unexpected: bool) {
        let (call, text) = (call.into(), error.to_string());
        self.note(What::Failed {
            call,
            is_unexpected,
            text,
        });
    }

    pub(super) fn next_hold(&self) -> HoldNumber {
        self.holds.fetch_add(1, Ordering::Relaxed)
    }
}

/// Whether no fault of a program explains the error.
pub(super) fn is_unexpected(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidInput
            | ErrorKind::Misconfigured
            | ErrorKind::NotInitialized
            | ErrorKind::PermitsDiffer
            | ErrorKind::InvalidResponse
            | ErrorKind::IncompatibleKey
            | ErrorKind::Corrupt
            | ErrorKind::Forked
    )
}
