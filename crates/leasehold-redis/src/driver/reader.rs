//! Which task waits for the sockets of a driver.
//!
//! One task at a time does, the reader. It runs on the runtime of the callers, so that no thread has to wake another one
//! for a reply. The task of the client's thread does it for callers without a runtime. It also helps if the other task
//! does not get to run.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use leasehold::store::background;

use super::shared::Shared;

impl Shared {
    /// Lets a task of the caller's runtime wait for replies, unless one does already.
    pub(super) fn read_here(self: &Arc<Self>) {
        if let Some(own) = self.own_runtime.get()
            && let Some(number) = self.reading.begin_for_caller(*own)
        {
            let reader = CallerReader {
                shared: Arc::clone(self),
                number,
            };
            drop(background::spawn(async move {
                poll_fn(|context| reader.shared.poll_reading(reader.number, context)).await;
            }));
        }
    }

    /// Hands everything that arrives to the engine, until another reader begins.
    pub(super) fn poll_reading(&self, reader: u64, context: &mut Context<'_>) -> Poll<()> {
        // A forked child may go on with this task, and would take the parent's replies.
        if !self.reading.is_reader(reader) || self.is_forked() {
            return Poll::Ready(());
        }
        let is_any = self.reading.poll(reader, context);
        if self.has_ended() {
            return Poll::Ready(());
        }
        if is_any {
            self.advance();
        }
        Poll::Pending
    }

    /// Hands everything that has arrived to the engine, without waiting. Returns whether there was something.
    pub(super) fn read_now(&self) -> bool {
        let is_any = self.reading.read();
        self.advance();
        is_any
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
