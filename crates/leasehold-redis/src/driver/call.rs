use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use leasehold::{Error, ErrorKind};
use leasehold_quorum::{Event, Operation, OperationId, Outcome};

use super::Driver;
use super::shared::Shared;

/// An operation that is under way.
///
/// Dropping it undoes an acquisition in the background, and forgets a record operation. A renewal or a
/// release goes on. It needs no runtime.
#[derive(Debug)]
pub struct Call {
    shared: Arc<Shared>,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    /// The operation could not begin.
    Failed(Option<Error>),
    Open {
        id: OperationId,
        advance: Advance,
    },
    Ended,
}

/// Whether the future carries out what all callers asked for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advance {
    /// Another thread or caller.
    ByAnother,
    /// When it is polled.
    Now,
    /// After the other tasks that are ready now: they submit as well, and one write sends all.
    AfterYield,
}

/// With this many operations, a batch is long enough: the server can begin.
const BATCH: usize = 32;

impl Driver {
    /// Begins an operation.
    ///
    /// If no other call is open or the batch is long enough, this advances the driver. Otherwise the first caller of a
    /// batch does it after it yielded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call undoes an acquisition: it gives back what it took or may have taken. A renewal or a release
    /// goes on.
    pub fn start(&self, operation: Operation) -> Call {
        let shared = &self.shared;
        let call = |state| Call {
            shared: Arc::clone(shared),
            state,
        };
        if shared.is_forked() {
            return call(CallState::Failed(Some(forked())));
        }
        let mut submissions = shared.submissions();
        let Some(id) = submissions.start(operation) else {
            return call(CallState::Failed(Some(closed())));
        };
        let (length, is_alone) = (submissions.len(), submissions.is_single());
        drop(submissions);
        // `is_watched` says why that order suffices.
        if !shared.is_watched.load(Ordering::Relaxed) {
            // If that caller is never polled, the thread takes over.
            shared.thread.notify_one();
        }
        shared.runtimes.read(shared);
        let is_first = length == 1 && !is_alone;
        if is_alone || length == BATCH {
            shared.advance();
        }
        let advance = match is_first {
            true => Advance::AfterYield,
            false => Advance::ByAnother,
        };
        call(CallState::Open { id, advance })
    }
}

impl Call {
    /// Returns the next event: the outcome, or an intermediate result.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn event(&mut self) -> Event {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let (id, advance) = match &mut self.state {
            CallState::Failed(error) => {
                let error = error.take().unwrap_or_else(closed);
                return Poll::Ready(Event::Done(Outcome::Failed(error)));
            }
            CallState::Open { id, advance } => (*id, advance),
            CallState::Ended => return Poll::Ready(Event::Done(Outcome::Failed(closed()))),
        };
        match advance {
            // The other tasks that are ready now append first.
            Advance::AfterYield => {
                *advance = Advance::Now;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Advance::Now => {
                *advance = Advance::ByAnother;
                self.shared.advance();
            }
            Advance::ByAnother => {}
        }
        let event = match self.shared.submissions().poll(id, context.waker()) {
            Poll::Ready(event) => event.unwrap_or_else(|| Event::Done(Outcome::Failed(closed()))),
            Poll::Pending => return Poll::Pending,
        };
        if matches!(event, Event::Done(_)) {
            self.state = CallState::Ended;
        }
        Poll::Ready(event)
    }
}

impl Future for Call {
    type Output = Outcome;

    /// Waits for the outcome, and passes over intermediate results.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            match self.poll_event(context) {
                Poll::Ready(Event::Done(outcome)) => return Poll::Ready(outcome),
                Poll::Ready(Event::Progress(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // If this future was to advance the driver, the task of the client's thread does it instead.
        if let CallState::Open { id, .. } = self.state
            && !self.shared.is_forked()
        {
            self.shared.cancel(id);
        }
    }
}

pub(super) fn forked() -> Error {
    let text = "the process was forked: a client belongs to the process that made it; make a new one \
                in the child";
    Error::new(ErrorKind::Forked, text)
}

pub(super) fn forgotten() -> Error {
    let text = "the server forgot the scripts at once (SCRIPT FLUSH); try again";
    Error::new(ErrorKind::Unreachable, text)
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed")
}
