//! Which task waits for the sockets of a driver.
//!
//! One task at a time does, the reader. It runs on the runtime of the callers, so that no thread has to wake another one
//! for a reply. It becomes the reader when that runtime polls it, so a runtime that does not run gets no sockets. The task
//! of the client's thread is the reader for callers without such a runtime, and once the other task has not run for
//! some ticks.
//!
//! # Who may touch what
//!
//! - A socket is registered at the runtime of the reader alone. [`Incoming`](super::reading::Incoming) holds the registration behind the mutex
//!   of its member, and only a reader makes one. A former reader may still hold that mutex for a moment, so a
//!   registration of a later reader stays.
//! - Every thread may read a socket without waiting, behind the same mutex. The bytes stay in the parser until the
//!   thread that has the driver's state takes them.
//! - The number of the reader changes behind the mutex of its waker alone. Odd numbers are tasks of callers. A reader
//!   compares its number behind that mutex at each poll, so a replaced one ends at its next poll, and
//!   [`replace`](super::reading::Reading::replace) wakes it for that.
//!
//! # Memory orders
//!
//! | value | order | why that suffices |
//! |---|---|---|
//! | number of the reader, outside of its mutex | release, acquire | a hint: who acts on it compares again behind the mutex |
//! | count of polls; whether callers may read | relaxed | hints that are read again with the next call or tick |
//! | whether bytes are blocked | release, acquire | set before the reader is woken, which looks at it behind the member's mutex |
//! | whether the thread watches | relaxed | the mutex of the submissions orders it: a caller adds one, and then looks; the thread clears the mark, and then looks for one. So one of both sees what the other did |

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::shared::Shared;

impl Shared {
    /// Lets a task of the caller's runtime wait for replies, unless one does already.
    pub(super) fn read_here(self: &Arc<Self>) {
        if self.reading.reader_on_thread().is_some() && self.reading.is_for_callers() {
            self.runtimes.start(|| read(Arc::downgrade(self)));
        }
    }

    /// Hands everything that arrives to the engine, until another reader begins.
    pub(super) fn poll_reading(&self, reader: u64, context: &mut Context<'_>) -> Poll<()> {
        // A forked child may go on with this task, and would take the parent's replies.
        if self.is_forked() {
            return Poll::Ready(());
        }
        match self.reading.poll(reader, context) {
            None => return Poll::Ready(()),
            Some(_) if self.has_ended() => return Poll::Ready(()),
            Some(true) => self.advance(),
            Some(false) => {}
        }
        Poll::Pending
    }

    /// Hands everything that has arrived to the engine, without waiting.
    pub(super) fn read_now(&self) {
        self.reading.read();
        self.advance();
    }
}

/// Becomes the reader when it is polled, unless another task of a caller is.
async fn read(shared: Weak<Shared>) {
    let Some(shared) = shared.upgrade().filter(|shared| !shared.is_forked()) else {
        return;
    };
    if let Some(number) = shared.reading.begin_for_caller() {
        let reader = CallerReader { shared, number };
        poll_fn(|context| reader.shared.poll_reading(number, context)).await;
    }
}

/// Makes the client's thread the reader at the end, also if the runtime ends or has no I/O.
struct CallerReader {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for CallerReader {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            // The registrations belong to the parent as well, and this mutex may never become free.
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        if std::thread::panicking() {
            self.shared.reading.refuse_callers();
        }
        self.shared.reading.replace(self.number);
        self.shared.thread.notify_one();
    }
}
