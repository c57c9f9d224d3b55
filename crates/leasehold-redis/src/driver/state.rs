use std::sync::Arc;
use std::task::Waker;

use foldhash::HashMap;
use leasehold::clock::BootInstant;
use leasehold::telemetry::MemberStandings;
use leasehold::{Claim, Error};
use leasehold_quorum::{
    Engine, MemberEvent, Now, Operation, OperationId, Outcome, Progress, ReleaseMode,
};

use super::link::{Batch, Link};
use super::news;
use super::open::Event;
use super::question::{Question, Questions};
use crate::resp::Value;

/// Everything that the threads of a client share, behind one mutex.
#[derive(Debug)]
pub(super) struct State {
    /// `None` if callers only ask members themselves.
    engine: Option<Engine>,
    pub(super) links: Vec<Link>,
    pub(super) questions: Questions,
    calls: HashMap<OperationId, Call>,
    /// Futures to wake when the mutex is free again.
    wakers: Vec<Waker>,
    /// What to write to the log when the mutex is free again.
    /// The metric of the members' states.
    standings: Option<MemberStandings>,
    news: Vec<MemberEvent>,
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
    pub(super) fn new(
        engine: Option<Engine>,
        links: Vec<Link>,
        standings: Option<MemberStandings>,
    ) -> Self {
        Self {
            engine,
            links,
            questions: Questions::default(),
            calls: HashMap::default(),
            wakers: Vec::new(),
            standings,
            news: Vec::new(),
            unwritten: false,
            writer_since: None,
            timer: None,
            closing: false,
            ended: false,
            flushing: Vec::new(),
        }
    }

    /// Begins an operation that a future waits for, if there is an engine.
    pub(super) fn start(&mut self, now: Now, operation: Operation) -> Option<OperationId> {
        let claim = match &operation {
            Operation::Acquire(claim) => Some(Arc::clone(claim)),
            _ => None,
        };
        let id = self.engine.as_mut()?.start(now, operation);
        let call = Call {
            claim,
            waker: None,
            event: None,
        };
        self.calls.insert(id, call);
        self.pump();
        Some(id)
    }

    /// Adds a question to a member.
    pub(super) fn ask(&mut self, member: usize, question: Question) {
        self.unwritten |= self.links[member].ask(question);
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

    /// The future of an operation is gone. The engine undoes an acquisition and forgets a record operation;
    /// anything else goes on.
    pub(super) fn abandon(&mut self, now: Now, id: OperationId) {
        let (Some(call), Some(engine)) = (self.calls.remove(&id), &mut self.engine) else {
            return;
        };
        match (call.event, call.claim) {
            (Some(Ok(Outcome::Acquired(_))), Some(claim)) => {
                let release = Operation::Release(claim, ReleaseMode::HandOver);
                engine.start(now, release);
            }
            (Some(Ok(_)), _) => {}
            (Some(Err(_)) | None, _) => engine.cancel(now, id),
        }
        self.pump();
    }

    /// The member is connected. `connect` enters the connection.
    pub(super) fn connected(
        &mut self,
        now: Now,
        member: usize,
        has_plain_commands: bool,
        connect: impl FnOnce(&mut Link),
    ) {
        let link = &mut self.links[member];
        connect(link);
        link.ask_pending(|id| self.questions.is_open(id));
        self.unwritten |= link.has_output();
        if let Some(engine) = &mut self.engine {
            engine.allow_plain_commands(member, has_plain_commands);
            engine.handle_connect(now, member);
        }
        self.pump();
    }

    /// The connection is gone, or could not be made.
    pub(super) fn disconnected(&mut self, now: Now, member: usize, error: Error) {
        let questions = &mut self.questions;
        self.links[member].disconnect(&error, |id, error| questions.answer(id, Err(error)));
        if let Some(engine) = &mut self.engine {
            engine.handle_disconnect(now, member, error);
        }
        self.pump();
    }

    /// Takes in what a member sent.
    pub(super) fn receive(
        &mut self,
        now: Now,
        member: usize,
        values: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let (mut engine, questions) = (self.engine.as_mut(), &mut self.questions);
        let link = &mut self.links[member];
        let received = link.receive(now.instant, values, |event| match (event, &mut engine) {
            (Event::Answer(id, replies), _) => questions.answer(id, Ok(replies)),
            (Event::Batch(batch), Some(engine)) => engine.handle_replies(now, member, batch),
            (Event::Notification(notification), Some(engine)) => {
                engine.handle_notification(now, member, notification);
            }
            (Event::Batch(_) | Event::Notification(_), None) => {}
        });
        // A reply may ask for a script to be loaded.
        self.unwritten |= self.links[member].has_output();
        self.pump();
        received
    }

    /// Takes in that time passed.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.questions.handle_timeout(now.instant);
        if let Some(engine) = &mut self.engine
            && engine.next_timeout().is_some_and(|due| due <= now.instant)
        {
            engine.handle_timeout(now);
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
        self.closing && self.is_idle() && !self.has_output()
    }

    /// Returns whether nothing is left to do at members that answer. Otherwise `waker` is woken then.
    pub(super) fn poll_idle(&mut self, waker: &Waker) -> bool {
        let is_idle = self.is_idle() && !self.has_output();
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
        let engine = self.engine.as_ref().and_then(Engine::next_timeout);
        let timeouts = [engine, self.questions.next_timeout()];
        timeouts.into_iter().flatten().min()
    }

    fn is_idle(&self) -> bool {
        self.engine.as_ref().is_none_or(Engine::is_idle)
    }

    /// Ends all calls: the thread is gone.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.questions.clear();
        let calls = self.calls.drain();
        self.wakers.extend(calls.filter_map(|(_, call)| call.waker));
    }

    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        if !self.flushing.is_empty() && (self.ended || self.is_idle()) {
            self.wakers.append(&mut self.flushing);
        }
        std::mem::take(&mut self.wakers)
    }

    pub(super) fn take_news(&mut self) -> Vec<MemberEvent> {
        std::mem::take(&mut self.news)
    }

    /// Passes on what the engine has to say, to members and to futures.
    pub(super) fn pump(&mut self) {
        let Some(engine) = &mut self.engine else {
            return;
        };
        while let Some((member, id, request)) = engine.poll_transmit() {
            let is_open = self.links[member].push(id, request);
            self.unwritten |= is_open;
        }
        while let Some(event) = engine.poll_member_event() {
            if let Some(standings) = &mut self.standings {
                news::count(standings, &event);
            }
            self.news.push(event);
        }
        while let Some((id, event)) = engine.poll_event() {
            // An operation without a call was abandoned.
            if let Some(call) = self.calls.get_mut(&id) {
                call.event = Some(event);
                self.wakers.extend(call.waker.take());
            }
        }
    }
}
