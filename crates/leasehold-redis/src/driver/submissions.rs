use std::task::{Poll, Waker};

use leasehold_quorum::{Event, Operation, OperationId, Outcome, Progress};
use slab::Slab;

/// The operations that callers submit, and what they get. Its mutex is held for a moment only, and never while the
/// engine works.
#[derive(Debug)]
pub(super) struct Submissions {
    last: u64,
    /// What no thread took yet, the oldest first.
    open: Vec<Submission>,
    /// The open calls. The last bits of an id are the index here.
    calls: Slab<PendingCall>,
    /// No further operation begins, and the thread ends when all is done.
    closing: bool,
    /// The thread ended.
    ended: bool,
}

/// What a caller submits.
#[derive(Debug)]
pub(super) enum Submission {
    Start(OperationId, Operation),
    Cancel(OperationId),
}

/// How many bits of an id are the index of its call.
const INDEX_BITS: u32 = 24;

/// An operation that a future waits for.
#[derive(Debug)]
struct PendingCall {
    id: OperationId,
    waker: Option<Waker>,
    /// The newest intermediate result that the future has not seen.
    progress: Option<Box<Progress>>,
    outcome: Option<Outcome>,
}

impl Submissions {
    pub(super) fn new() -> Self {
        Self {
            last: 0,
            open: Vec::new(),
            calls: Slab::new(),
            closing: false,
            ended: false,
        }
    }

    /// Asks for an operation. `None` if the driver is closed.
    pub(super) fn start(&mut self, operation: Operation) -> Option<OperationId> {
        let index = self.calls.vacant_key() as u64;
        // No machine has memory for more calls.
        if self.is_closed() || index >> INDEX_BITS != 0 {
            return None;
        }
        self.last += 1;
        let id = OperationId(self.last << INDEX_BITS | index);
        self.calls.insert(PendingCall {
            id,
            waker: None,
            progress: None,
            outcome: None,
        });
        self.open.push(Submission::Start(id, operation));
        Some(id)
    }

    /// The future of an operation is gone, before it took the outcome.
    pub(super) fn cancel(&mut self, id: OperationId) {
        self.end_call(id);
        self.open.push(Submission::Cancel(id));
    }

    fn call(&mut self, id: OperationId) -> Option<&mut PendingCall> {
        let call = self.calls.get_mut(index_of(id))?;
        (call.id == id).then_some(call)
    }

    fn end_call(&mut self, id: OperationId) {
        if self.call(id).is_some() {
            self.calls.remove(index_of(id));
        }
    }

    /// Takes what is open. `room` becomes the room for what comes next.
    pub(super) fn take(&mut self, room: &mut Vec<Submission>) {
        debug_assert!(room.is_empty(), "{room:?}");
        std::mem::swap(&mut self.open, room);
    }

    /// Returns the next event of an operation, or `None` if the thread ended before it. Otherwise `waker` is
    /// woken when there is one. An outcome does not hide the intermediate result before it: the caller counts
    /// how many calls found the lock held.
    pub(super) fn poll(&mut self, id: OperationId, waker: &Waker) -> Poll<Option<Event>> {
        let ended = self.ended;
        let Some(call) = self.call(id) else {
            return Poll::Ready(None);
        };
        if let Some(progress) = call.progress.take() {
            return Poll::Ready(Some(Event::Progress(*progress)));
        }
        if let Some(outcome) = call.outcome.take() {
            self.end_call(id);
            return Poll::Ready(Some(Event::Done(outcome)));
        }
        if ended {
            return Poll::Ready(None);
        }
        match &mut call.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Poll::Pending
    }

    /// Hands events to the futures that wait for them, and adds these to `wakers`.
    pub(super) fn deliver(
        &mut self,
        events: impl Iterator<Item = (OperationId, Event)>,
        wakers: &mut Vec<Waker>,
    ) {
        for (id, event) in events {
            // An operation without a call was cancelled: the engine undoes it.
            if let Some(call) = self.call(id) {
                match event {
                    Event::Done(outcome) => call.outcome = Some(outcome),
                    Event::Progress(progress) => call.progress = Some(Box::new(progress)),
                }
                wakers.extend(call.waker.take());
            }
        }
    }

    /// Lets no further operation begin.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Returns whether no further operation can begin.
    pub(super) fn is_closed(&self) -> bool {
        self.closing || self.ended
    }

    /// Returns whether a single call waits for its outcome.
    pub(super) fn is_single(&self) -> bool {
        self.calls.len() == 1
    }

    /// Returns how many submissions no thread took yet.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns whether nothing is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The thread ended. Returns the futures that wait.
    pub(super) fn end(&mut self) -> Vec<Waker> {
        self.ended = true;
        let calls = self.calls.iter_mut();
        calls.filter_map(|(_, call)| call.waker.take()).collect()
    }
}

fn index_of(id: OperationId) -> usize {
    (id.0 & ((1 << INDEX_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use leasehold::store::Busy;

    use super::*;

    #[test]
    fn outcome_does_not_hide_an_unseen_busy_answer() {
        let mut submissions = Submissions::new();
        let id = submissions.start(Operation::Health).unwrap();
        let busy = Progress::Busy(Busy::by(None));
        let events = [
            Event::Progress(busy),
            Event::Done(Outcome::Health(Vec::new())),
        ];
        submissions.deliver(events.map(|event| (id, event)).into_iter(), &mut Vec::new());
        let mut next = || submissions.poll(id, Waker::noop());
        let progress = next();
        assert!(matches!(
            progress,
            Poll::Ready(Some(Event::Progress(Progress::Busy(_))))
        ));
        let outcome = next();
        assert!(matches!(
            outcome,
            Poll::Ready(Some(Event::Done(Outcome::Health(_))))
        ));
        assert!(matches!(next(), Poll::Ready(None)));
    }
}
