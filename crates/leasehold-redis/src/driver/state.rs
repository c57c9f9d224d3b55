use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::task::Waker;

use leasehold::clock::BootInstant;
use leasehold::{Claim, Error};
use leasehold_quorum::{Engine, Now, Operation, OperationId, Outcome, Progress, ReleaseMode};

use super::link::{Batch, Link};
use super::open::{Asker, Event};
use crate::resp::Value;

/// Everything that the threads of a client share, behind one mutex.
#[derive(Debug)]
pub(super) struct State {
    engine: Engine,
    pub(super) links: Vec<Link>,
    calls: HashMap<OperationId, Call, BuildHasherDefault<IdHasher>>,
    /// Futures to wake when the mutex is free again.
    wakers: Vec<Waker>,
    /// There are bytes that no thread took for writing.
    pub(super) unwritten: bool,
    /// Since when a future or the I/O thread has the duty to write.
    pub(super) writer_since: Option<BootInstant>,
    /// When the I/O thread wakes up by itself; `None`: not at all.
    pub(super) timer: Option<BootInstant>,
    /// No further operation begins, and the thread ends when all is done.
    pub(super) closing: bool,
    /// The thread ended.
    pub(super) ended: bool,
    /// Futures that wait until nothing is in flight.
    flushing: Vec<Waker>,
}

/// An operation that a future waits for.
#[derive(Debug)]
struct Call {
    /// What the operation takes, if it takes a lock.
    claim: Option<Arc<Claim>>,
    waker: Option<Waker>,
    event: Option<Result<Outcome, Progress>>,
}

impl State {
    pub(super) fn new(engine: Engine, links: Vec<Link>) -> Self {
        Self {
            engine,
            links,
            calls: HashMap::default(),
            wakers: Vec::new(),
            unwritten: false,
            writer_since: None,
            timer: None,
            closing: false,
            ended: false,
            flushing: Vec::new(),
        }
    }

    /// Begins an operation that a future waits for.
    pub(super) fn start(&mut self, now: Now, operation: Operation) -> OperationId {
        let claim = match &operation {
            Operation::Acquire(claim) => Some(Arc::clone(claim)),
            _ => None,
        };
        let id = self.engine.start(now, operation);
        let call = Call {
            claim,
            waker: None,
            event: None,
        };
        self.calls.insert(id, call);
        self.pump();
        id
    }

    /// Returns the next event of an operation. Otherwise `waker` is woken when there is one.
    pub(super) fn poll_event(
        &mut self,
        id: OperationId,
        waker: &Waker,
    ) -> Option<Result<Outcome, Progress>> {
        let call = self.calls.get_mut(&id)?;
        match call.event.take() {
            Some(Ok(outcome)) => {
                self.calls.remove(&id);
                Some(Ok(outcome))
            }
            Some(Err(progress)) => Some(Err(progress)),
            None => {
                match &mut call.waker {
                    Some(known) => known.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                None
            }
        }
    }

    /// The future of an operation is gone. An acquisition is undone; anything else goes on.
    pub(super) fn abandon(&mut self, now: Now, id: OperationId) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let Some(claim) = call.claim else { return };
        match call.event {
            Some(Ok(Outcome::Acquired(_))) => {
                let release = Operation::Release(claim, ReleaseMode::HandOver);
                self.engine.start(now, release);
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => self.engine.cancel(now, id),
        }
        self.pump();
    }

    /// The member is connected. `connect` enters the connection.
    pub(super) fn connected(&mut self, now: Now, member: usize, connect: impl FnOnce(&mut Link)) {
        connect(&mut self.links[member]);
        self.engine.handle_connect(now, member);
        self.pump();
    }

    /// The connection is gone, or could not be made.
    pub(super) fn disconnected(&mut self, now: Now, member: usize, error: Error) {
        self.links[member].disconnect(&error);
        self.engine.handle_disconnect(now, member, error);
        self.pump();
    }

    /// Takes in what a member sent.
    pub(super) fn receive(
        &mut self,
        now: Now,
        member: usize,
        values: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let engine = &mut self.engine;
        let received = self.links[member].receive(now.instant, values, |event| match event {
            Event::Batch(batch) => engine.handle_replies(now, member, batch),
            Event::Notification(notification) => {
                engine.handle_notification(now, member, notification);
            }
        });
        // A reply may ask for a script to be loaded.
        self.unwritten |= self.links[member].has_output();
        self.pump();
        received
    }

    /// Takes in that time passed.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        if self
            .engine
            .next_timeout()
            .is_some_and(|due| due <= now.instant)
        {
            self.engine.handle_timeout(now);
            self.pump();
        }
    }

    /// Takes the batches that any thread may write.
    pub(super) fn take_batches(&mut self, batches: &mut Vec<Batch>) {
        self.unwritten = false;
        self.writer_since = None;
        for (member, link) in self.links.iter_mut().enumerate() {
            batches.extend(link.take(member));
        }
    }

    /// Returns whether there is a batch that any thread may write.
    pub(super) fn has_output(&self) -> bool {
        let waits = |link: &Link| link.has_output() && !link.needs_task();
        self.links.iter().any(waits)
    }

    /// Returns whether the thread can end.
    pub(super) fn is_done(&self) -> bool {
        self.closing && self.engine.is_idle() && !self.has_output()
    }

    /// Returns whether nothing is left to do at members that answer. Otherwise `waker` is woken then.
    pub(super) fn poll_idle(&mut self, waker: &Waker) -> bool {
        let is_idle = self.engine.is_idle() && !self.has_output();
        if !is_idle && !self.ended {
            self.flushing.push(waker.clone());
        }
        is_idle || self.ended
    }

    /// Returns whether a member has yet to reply.
    pub(super) fn is_busy(&self) -> bool {
        self.links.iter().any(Link::is_busy)
    }

    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        self.engine.next_timeout()
    }

    /// Ends all calls: the thread is gone.
    pub(super) fn end(&mut self) {
        self.ended = true;
        let calls = self.calls.drain();
        self.wakers.extend(calls.filter_map(|(_, call)| call.waker));
    }

    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        if !self.flushing.is_empty() && (self.ended || self.engine.is_idle()) {
            self.wakers.append(&mut self.flushing);
        }
        std::mem::take(&mut self.wakers)
    }

    /// Passes on what the engine has to say, to members and to futures.
    pub(super) fn pump(&mut self) {
        while let Some((member, id, request)) = self.engine.poll_transmit() {
            let is_open = self.links[member].push(Asker::Engine(id), request);
            self.unwritten |= is_open;
        }
        while let Some(event) = self.engine.poll_member_event() {
            tracing::debug!(?event, "news of a member");
        }
        while let Some((id, event)) = self.engine.poll_event() {
            // An operation without a call was abandoned.
            if let Some(call) = self.calls.get_mut(&id) {
                call.event = Some(event);
                self.wakers.extend(call.waker.take());
            }
        }
    }
}

/// Ids are counted, so they are their own hashes.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The table looks at the upper bits, too.
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
