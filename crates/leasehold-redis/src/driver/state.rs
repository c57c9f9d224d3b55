use std::task::Waker;

use leasehold::Error;
use leasehold::clock::BootInstant;
use leasehold::telemetry::MemberGauges;
use leasehold_quorum::{
    BatchReply, Engine, LeaseState, MemberEvent, MemberIndex, Now, OperationId, PerMember, Reply,
};

use super::member_events;
use super::reading::Reading;
use super::submissions::Submission;
use crate::codec::is_read_only;
use crate::connection::encoder::Encoder;
use crate::connection::pipeline::{Event, Pipeline};
use crate::connection::raw_request::RawRequests;
use crate::connection::socket::broken;
use crate::connection::state::Connection;

/// Everything that the threads of a client share, behind one mutex.
#[derive(Debug)]
pub(super) struct DriverState {
    /// `None` if callers only ask members themselves.
    engine: Option<Engine>,
    pub(super) connections: PerMember<Connection>,
    encoder: Encoder,
    pub(super) raw_requests: RawRequests,
    /// What callers asked for, while it is carried out.
    pub(super) submissions: Vec<Submission>,
    /// Events that no caller knows yet.
    pub(super) events: Vec<(OperationId, leasehold_quorum::Event)>,
    /// The metric of the members' states.
    gauges: Option<MemberGauges>,
    /// What to write to the log when the mutex is free again.
    member_events: Vec<MemberEvent>,
    /// When the client's thread wakes up by itself; `None`: not at all.
    pub(super) timer: Option<BootInstant>,
    /// The thread ended.
    ended: bool,
    /// Futures that wait until nothing is in flight, and look at each change.
    flushing: Vec<Waker>,
}

impl DriverState {
    pub(super) fn new(
        engine: Option<Engine>,
        connections: PerMember<Connection>,
        gauges: Option<MemberGauges>,
    ) -> Self {
        let encoder = Encoder::new(connections.iter().map(Connection::codec));
        Self {
            engine,
            connections,
            encoder,
            raw_requests: RawRequests::default(),
            submissions: Vec::new(),
            events: Vec::new(),
            gauges,
            member_events: Vec::new(),
            timer: None,
            ended: false,
            flushing: Vec::new(),
        }
    }

    /// Carries out what callers asked for.
    pub(super) fn carry_out(&mut self, now: Now) {
        let Some(engine) = &mut self.engine else {
            return self.submissions.clear();
        };
        for submission in self.submissions.drain(..) {
            match submission {
                Submission::Start(id, operation) => engine.start(now, id, operation),
                // An acquisition is undone, and a record operation forgotten. Anything else goes on.
                Submission::Cancel(id) => engine.cancel(now, id),
            }
        }
    }

    /// The member is connected. `connect` enters the connection.
    pub(super) fn connected(
        &mut self,
        now: Now,
        member: MemberIndex,
        has_plain_commands: bool,
        connect: impl FnOnce(&mut Connection),
    ) {
        let connection = &mut self.connections[member];
        connect(connection);
        connection.ask_pending(|id| self.raw_requests.is_open(id));
        if let Some(engine) = &mut self.engine {
            engine.allow_plain_commands(member, has_plain_commands);
            engine.handle_connect(now, member);
        }
    }

    /// The connection is gone, or could not be made.
    pub(super) fn disconnected(&mut self, now: Now, member: MemberIndex, error: Error) {
        let raw_requests = &mut self.raw_requests;
        self.connections[member]
            .disconnect(&error, |id, error| raw_requests.answer(id, Err(error)));
        if let Some(engine) = &mut self.engine {
            engine.handle_disconnect(now, member, error);
        }
    }

    /// Hands what arrived to the engine.
    ///
    /// Another thread may read at any time, so only a time after the bytes are taken is late enough. With an earlier
    /// one, the clock of the server would seem to be ahead.
    pub(super) fn receive(&mut self, reading: &Reading, now: impl Fn() -> Now) {
        let (mut engine, raw_requests) = (self.engine.as_mut(), &mut self.raw_requests);
        for (member, connection) in self.connections.iter_mut_enumerated() {
            let mut incoming = reading.member(member);
            let Some(incoming) = &mut *incoming else {
                continue;
            };
            if let Some(parser) = incoming.take_unread()
                && let Some(open) = &mut connection.open
            {
                let (now, mut demoted) = (now(), None);
                let received =
                    open.receive(now.instant, parser, |event| match (event, &mut engine) {
                        (Event::RawReplies(id, replies), _) => raw_requests.answer(id, Ok(replies)),
                        (Event::Batch(batch), Some(engine)) => {
                            demoted = demoted.take().or_else(|| read_only_error(&batch));
                            engine.handle_replies(now, member, batch);
                        }
                        (Event::Notification(notification), Some(engine)) => {
                            engine.handle_notification(now, member, notification);
                        }
                        (Event::Batch(_) | Event::Notification(_), None) => {}
                    });
                // The name of the server may lead to another primary by now.
                if let Some(error) = received.err().or(demoted) {
                    incoming.fail(error);
                }
            }
            if incoming.has_ended() {
                reading.task(member).wake();
            }
        }
    }

    /// Writes what the kernel takes at once, and watches for members that owe replies for too long.
    pub(super) fn write(&mut self, reading: &Reading, now: Now) {
        for (member, connection) in self.connections.iter_mut_enumerated() {
            let Some(open) = &mut connection.open else {
                continue;
            };
            match open.write() {
                Ok(true) => {}
                Ok(false) => reading.blocked(member),
                Err(error) => reading.end(member, broken(&error)),
            }
            open.watch(now.instant);
            if open.is_silent().is_some() {
                reading.task(member).wake();
            }
        }
    }

    /// Takes in that time passed.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.raw_requests.handle_timeout(now.instant);
        if let Some(engine) = &mut self.engine
            && engine.next_timeout().is_some_and(|due| due <= now.instant)
        {
            engine.handle_timeout(now);
        }
    }

    /// Returns the connections that are open.
    fn open(&self) -> impl Iterator<Item = &Pipeline> {
        self.connections.iter().filter_map(|it| it.open.as_ref())
    }

    /// Returns whether the kernel has yet to take something.
    fn has_output(&self) -> bool {
        self.open().any(Pipeline::has_output)
    }

    /// Returns whether nothing is left to do at members that answer, or the thread ended.
    pub(super) fn is_idle(&self) -> bool {
        let is_idle = |engine: &Engine| engine.is_idle();
        self.ended || (self.engine.as_ref().is_none_or(is_idle) && !self.has_output())
    }

    /// Returns whether all that is left is the replies of members that are slow: the kernel has all requests, and
    /// delivers them even after the process has ended.
    pub(super) fn is_handed_over(&self) -> bool {
        let is_decided = self.engine.as_ref().is_none_or(Engine::is_decided);
        is_decided && !self.has_output()
    }

    /// Sends the releases again that members have not answered.
    pub(super) fn repeat_releases(&mut self, now: Now) {
        if let Some(engine) = &mut self.engine {
            engine.repeat_releases(now);
        }
    }

    /// Returns how many leases may stay taken until they end, since their releases are not confirmed.
    pub(super) fn unconfirmed_releases(&self, now: Now) -> usize {
        let engine = self.engine.as_ref().filter(|_| !self.ended);
        engine.map_or(0, |engine| engine.unconfirmed_releases(now.instant))
    }

    /// Wakes `waker` when something changed.
    pub(super) fn wait_for_change(&mut self, waker: &Waker) {
        self.flushing.push(waker.clone());
    }

    /// Returns whether a member has yet to reply.
    pub(super) fn is_busy(&self) -> bool {
        self.open().any(Pipeline::is_busy)
    }

    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        let engine = self.engine.as_ref().and_then(Engine::next_timeout);
        let silences = self.open().map(Pipeline::next_timeout);
        let timeouts = [engine, self.raw_requests.next_timeout()];
        silences.chain(timeouts).flatten().min()
    }

    /// The thread is gone.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.raw_requests.clear();
        self.connections.iter_mut().for_each(|it| it.open = None);
    }

    /// Adds the futures that wait for a change.
    pub(super) fn take_flushing(&mut self, wakers: &mut Vec<Waker>) {
        wakers.append(&mut self.flushing);
    }

    pub(super) fn take_member_events(&mut self) -> Vec<MemberEvent> {
        std::mem::take(&mut self.member_events)
    }

    /// Passes on what the engine has to say, to members and to futures.
    pub(super) fn pump(&mut self, now: Now) {
        let Some(engine) = &mut self.engine else {
            return;
        };
        while let Some((members, id, request)) = engine.poll_transmit() {
            self.encoder.begin(&request);
            for member in members.iter() {
                if let Some(open) = &mut self.connections[member].open {
                    open.push(now.instant, &mut self.encoder, id, &request);
                }
            }
        }
        while let Some(event) = engine.poll_member_event() {
            if let Some(gauges) = &mut self.gauges {
                member_events::count(gauges, &event);
            }
            self.member_events.push(event);
        }
        while let Some(event) = engine.poll_event() {
            self.events.push(event);
        }
    }
}

/// The error of a replica that refused to write, if there is one among the replies.
fn read_only_error(batch: &BatchReply) -> Option<Error> {
    let of_leases = |states: &[LeaseState]| {
        let failed = |state: &LeaseState| match state {
            LeaseState::Failed(error) if is_read_only(error) => Some(error.clone()),
            _ => None,
        };
        states.iter().find_map(failed)
    };
    let mut replies = batch.replies.iter();
    replies.find_map(|(_, reply)| match reply {
        Reply::Failed(error) if is_read_only(error) => Some(error.clone()),
        Reply::Renewed(states) => of_leases(states),
        _ => None,
    })
}
