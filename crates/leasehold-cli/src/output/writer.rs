use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::mem;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use leasehold::store::background::thread;
use leasehold::store::locked;
use nix::sys::signal::SigSet;

/// Writes messages to stderr or a file on a thread of its own, because a stream that is not read blocks its
/// writer, and no thread that renews a lease may block.
///
/// It keeps a limited number of unwritten messages. If they become more, it drops the oldest, and
/// reports how many as soon as it can write again.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// `None` for stderr.
    file: Option<Arc<File>>,
    /// The line that reports how many messages were dropped.
    dropped_line: fn(u64) -> String,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    unwritten: VecDeque<String>,
    /// The length of all unwritten messages.
    bytes: usize,
    dropped: u64,
    is_writing: bool,
    has_thread: bool,
    /// Whether a status line is the last thing on the terminal.
    has_status: bool,
    has_failed: bool,
    /// Why the file could first not be written, until that is reported.
    failure: Option<io::Error>,
}

/// The length of the messages that are kept while stderr is not read.
const KEPT_MAX: usize = 64 * 1024;

impl Writer {
    /// Writes to `file`, or to stderr.
    pub(super) fn new(file: Option<File>, dropped_line: fn(u64) -> String) -> Self {
        Self {
            shared: Arc::default(),
            file: file.map(Arc::new),
            dropped_line,
        }
    }

    /// Writes `text` after all earlier texts, in place of the status line. Never blocks.
    pub(super) fn write(&self, text: &str) {
        self.push(text, false);
    }

    /// Shows `text` as the status line, unless earlier texts are still unwritten.
    pub(super) fn show_status(&self, text: &str) {
        if locked(&self.shared.queue).is_done() {
            self.push(text, true);
        }
    }

    /// Wipes the status line, if there is one.
    pub(super) fn clear_status(&self) {
        if locked(&self.shared.queue).has_status {
            self.push("", false);
        }
    }

    /// Waits until everything is written, for at most `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let queue = locked(&self.shared.queue);
        if queue.has_thread {
            let is_behind = |queue: &mut Queue| !queue.is_done();
            let waited = self
                .shared
                .changed
                .wait_timeout_while(queue, limit, is_behind);
            drop(waited);
        } else {
            // The system has no room for a thread.
            drop(queue);
            while let Some(text) = self.next() {
                self.write_out(&text);
            }
        }
    }

    /// Takes the reason why the file could not be written. There is only one, however often that happens.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        locked(&self.shared.queue).failure.take()
    }

    fn push(&self, text: &str, is_status: bool) {
        let mut queue = locked(&self.shared.queue);
        let wipe = if queue.has_status { "\r\x1b[K" } else { "" };
        queue.has_status = is_status;
        queue.push(format!("{wipe}{text}"));
        if !queue.has_thread {
            let writer = self.clone();
            queue.has_thread = thread("leasehold-err", move || writer.run()).is_ok();
        }
        self.shared.changed.notify_all();
    }

    /// Writes all texts, now and later.
    fn run(&self) {
        // Signals are for the thread that reads them.
        let _ = SigSet::all().thread_block();
        loop {
            match self.next() {
                Some(text) => self.write_out(&text),
                None => {
                    let queue = locked(&self.shared.queue);
                    let is_idle = |queue: &mut Queue| queue.unwritten.is_empty();
                    drop(self.shared.changed.wait_while(queue, is_idle));
                }
            }
        }
    }

    /// Takes the next text, which counts as unwritten until it is [written](Self::write_out).
    fn next(&self) -> Option<String> {
        let mut queue = locked(&self.shared.queue);
        let text = queue.pop()?;
        queue.is_writing = true;
        match mem::take(&mut queue.dropped) {
            0 => Some(text),
            dropped => Some((self.dropped_line)(dropped) + &text),
        }
    }

    /// A closed stream is not an error: there is no reader.
    fn write_out(&self, text: &str) {
        let written = match &self.file {
            Some(file) => (&**file).write_all(text.as_bytes()),
            None => io::stderr().write_all(text.as_bytes()),
        };
        let mut queue = locked(&self.shared.queue);
        queue.is_writing = false;
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
            && !queue.has_failed
        {
            queue.has_failed = true;
            queue.failure = Some(error);
        }
        drop(queue);
        self.shared.changed.notify_all();
    }
}

impl Queue {
    fn push(&mut self, text: String) {
        self.bytes += text.len();
        self.unwritten.push_back(text);
        while self.bytes > KEPT_MAX && self.unwritten.len() > 1 && self.pop().is_some() {
            self.dropped += 1;
        }
    }

    fn pop(&mut self) -> Option<String> {
        let text = self.unwritten.pop_front()?;
        self.bytes -= text.len();
        Some(text)
    }

    fn is_done(&self) -> bool {
        self.unwritten.is_empty() && !self.is_writing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_drops_the_oldest_and_counts() {
        let mut queue = Queue::default();
        for number in 0..2_000 {
            queue.push(format!("{number:099}\n"));
        }
        assert_eq!(queue.unwritten.len(), KEPT_MAX / 100);
        assert_eq!(queue.dropped, 2_000 - KEPT_MAX as u64 / 100);
        assert_eq!(queue.unwritten.back(), Some(&format!("{:099}\n", 1_999)));
        queue.push("x".repeat(2 * KEPT_MAX));
        assert_eq!(queue.unwritten.len(), 1, "a long message is kept alone");
    }
}
