use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use leasehold::{Error, ErrorKind, RunId};
use leasehold_quorum::{BatchReply, Notification, Reply, Request, RequestId};
use leasehold_redis::codec::{
    Codec, Decoded, SAMPLE_COMMANDS, Sampler, encode_sample, inbox, read_notification, script_of,
};
use leasehold_redis::resp::{CommandWriter, Parser, Value};
use leasehold_redis::scripts::Script;

use crate::actions::servers::ServerState;
use crate::history::What;
use crate::state::agenda::Action;
use crate::state::simulation::Simulation;
use crate::time::{MILLIS, SECOND, Time};

/// The driver's state of one member: its connection, and the replies that it expects.
#[derive(Debug)]
pub(crate) struct Session {
    codec: Codec,
    /// The connection, by its number.
    pub(crate) connection: Option<usize>,
    sampler: Option<Sampler>,
    /// Requests that the next flush writes.
    pending: Vec<(RequestId, Rc<Request>)>,
    /// The scripts that were loaded on this connection.
    loaded: Vec<&'static Script>,
    awaited: VecDeque<PendingReply>,
    parser: Parser,
    /// The replies so far to the first entry of `awaited`.
    values: Vec<Value>,
    replies: Vec<(RequestId, Reply)>,
    /// Notifications that arrived within a batch. The driver hands them in after the batch's replies.
    notifications: Vec<Notification>,
    /// How many attempts to connect failed in a row.
    failures: u32,
}

/// Replies that the client expects.
#[derive(Debug)]
enum PendingReply {
    /// `HELLO`, `INFO`, `SUBSCRIBE`.
    Opening,
    Request {
        id: RequestId,
        request: Rc<Request>,
        answers: usize,
    },
    /// The reply to `SCRIPT LOAD`.
    Script,
    Sample,
}

/// What the replies of a member mean to the engine.
enum Input {
    Connected,
    Batch(BatchReply),
    Notification(Notification),
}

impl Session {
    pub(crate) fn new(codec: Codec) -> Self {
        Self {
            codec,
            connection: None,
            sampler: None,
            pending: Vec::new(),
            loaded: Vec::new(),
            awaited: VecDeque::new(),
            parser: Parser::with_room(ROOM),
            values: Vec::new(),
            replies: Vec::new(),
            notifications: Vec::new(),
            failures: 0,
        }
    }

    /// Returns whether the script was not loaded on this connection before, and notes it.
    fn is_new(&mut self, script: &'static Script) -> bool {
        let is_new = !self.loaded.iter().any(|it| std::ptr::eq(*it, script));
        if is_new {
            self.loaded.push(script);
        }
        is_new
    }

    pub(crate) fn is_up(&self) -> bool {
        self.sampler.is_some()
    }

    fn reset(&mut self) {
        let codec = self.codec.clone();
        let failures = self.failures;
        *self = Self::new(codec);
        self.failures = failures;
    }

    /// Reads what arrived.
    fn read(&mut self, bytes: &[u8]) -> Vec<Input> {
        let mut inputs = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.parser.room();
            let count = rest.len().min(room.len());
            room[..count].copy_from_slice(&rest[..count]);
            self.parser.filled(count);
            rest = &rest[count..];
            while let Some(value) = self.parser.next_value().expect("RESP of the server") {
                if let Value::Push(parts) = &value
                    && !matches!(self.awaited.front(), Some(PendingReply::Opening))
                {
                    let read = read_notification(&self.codec.prefix, parts);
                    self.notifications.extend(read);
                } else {
                    self.values.push(value);
                    self.take_in(&mut inputs);
                }
                if self.values.is_empty() && self.replies.is_empty() {
                    let told = self.notifications.drain(..);
                    inputs.extend(told.map(Input::Notification));
                }
            }
        }
        inputs
    }

    fn take_in(&mut self, inputs: &mut Vec<Input>) {
        let answers = match self.awaited.front() {
            Some(PendingReply::Opening) => OPENING_COMMANDS,
            Some(PendingReply::Request { answers, .. }) => *answers,
            Some(PendingReply::Script) => 1,
            Some(PendingReply::Sample) => SAMPLE_COMMANDS,
            None => panic!("a reply to no command: {:?}", self.values),
        };
        if self.values.len() < answers {
            return;
        }
        let values = mem::take(&mut self.values);
        match self.awaited.pop_front() {
            Some(PendingReply::Opening) => {
                let run = run_id(&values[1]);
                self.sampler = Some(Sampler::new(run, "default"));
                self.failures = 0;
                inputs.push(Input::Connected);
            }
            Some(PendingReply::Request { id, request, .. }) => {
                match self.codec.decode(&request, &values) {
                    Decoded::Reply(reply) => self.replies.push((id, reply)),
                    Decoded::NoScript(_) => panic!("each script is loaded before its first use"),
                }
            }
            Some(PendingReply::Sample) => {
                let sampler = self.sampler.as_mut().expect("a connection that is up");
                let sample = sampler.read(&values[0], &values[1]).expect("a sample");
                let replies = mem::take(&mut self.replies);
                if !replies.is_empty() {
                    inputs.push(Input::Batch(BatchReply { sample, replies }));
                }
            }
            Some(PendingReply::Script) | None => {}
        }
    }
}

impl Simulation {
    /// Connects a client to a member.
    pub(crate) fn connect(&mut self, client: usize, member: usize) {
        if self.clients[client].is_gone()
            || self.clients[client].sessions[member].connection.is_some()
        {
            return;
        }
        let number = self.open_connection(client, member);
        let channel = inbox(self.clients[client].info.id);
        let session = &mut self.clients[client].sessions[member];
        session.connection = Some(number);
        session.awaited.push_back(PendingReply::Opening);
        let mut bytes = Vec::new();
        let mut writer = CommandWriter::new(&mut bytes);
        writer.command("HELLO").arg("3");
        writer.command("INFO").arg("server");
        writer.command("SUBSCRIBE").arg(channel);
        writer.finish();
        self.upload(number, vec![(None, bytes)]);
        self.agenda
            .add(self.now + CONNECT_MAX, Action::CheckOpening(number));
        let server = self.connections[number].server;
        if self.servers[server].state == ServerState::Down {
            // Nothing listens there.
            let refused = self.now + self.plan.delay.1;
            self.agenda.add(refused, Action::CheckConnection(number));
        }
    }

    /// Hands in what arrived, unless the client is stopped.
    pub(crate) fn process_inbox(&mut self, client: usize) {
        if !self.clients[client].is_running() {
            return;
        }
        while let Some(number) = self.clients[client].broken.pop_front() {
            self.disconnected(client, number);
        }
        while let Some((number, bytes)) = self.clients[client].inbox.pop_front() {
            if self.connections[number].is_open {
                self.hand_in(client, number, &bytes);
            }
        }
        self.turn(client);
    }

    fn disconnected(&mut self, client: usize, number: usize) {
        let member = self.connections[number].member;
        let session = &mut self.clients[client].sessions[member];
        if session.connection != Some(number) {
            return;
        }
        let was_up = session.is_up();
        session.failures += 1;
        session.reset();
        let longest = ((20 * MILLIS) << session.failures.min(5)).min(RECONNECT_MAX);
        let pause = self.rng.network.between(longest / 4, longest);
        let now = self.clients[client].now(self.now);
        let error =
            Error::new(ErrorKind::Unreachable, "the connection broke").with_unknown_effect();
        if was_up || self.clients[client].sessions[member].failures == 1 {
            self.note(|| format!("client {client} lost its connection to member {member}"));
        }
        self.clients[client]
            .engine
            .handle_disconnect(now, member, error);
        self.agenda
            .add(self.now + pause, Action::Connect { client, member });
    }

    fn hand_in(&mut self, client: usize, number: usize, bytes: &[u8]) {
        let member = self.connections[number].member;
        let server = self.connections[number].server;
        let inputs = self.clients[client].sessions[member].read(bytes);
        for input in inputs {
            let now = self.clients[client].now(self.now);
            match input {
                Input::Connected => self.clients[client].engine.handle_connect(now, member),
                Input::Batch(batch) => {
                    self.clients[client]
                        .engine
                        .handle_replies(now, member, batch);
                }
                Input::Notification(notification) => {
                    if let Some(wait) = self.owners.wait(&notification.waiter.to_ascii()) {
                        self.add(What::Notified { server, wait });
                    }
                    let engine = &mut self.clients[client].engine;
                    engine.handle_notification(now, member, notification);
                }
            }
            self.turn(client);
        }
    }

    /// Takes the requests of the engine, and schedules a write.
    pub(crate) fn collect_requests(&mut self, client: usize) {
        let it = &mut self.clients[client];
        while let Some((member, id, request)) = it.engine.poll_transmit() {
            it.sessions[member].pending.push((id, Rc::new(request)));
        }
        let has_pending = |session: &Session| session.is_up() && !session.pending.is_empty();
        if !it.is_flush_planned && it.sessions.iter().any(has_pending) {
            it.is_flush_planned = true;
            let pause = self.rng.network.below(WRITE_PAUSE_MAX);
            self.agenda.add(self.now + pause, Action::Flush { client });
        }
    }

    /// Writes a batch to each member for which there are requests.
    pub(crate) fn flush(&mut self, client: usize) {
        self.clients[client].is_flush_planned = false;
        if !self.clients[client].is_running() {
            return;
        }
        for member in 0..self.clients[client].sessions.len() {
            let session = &mut self.clients[client].sessions[member];
            let Some(number) = session.connection.filter(|_| session.is_up()) else {
                session.pending.clear();
                continue;
            };
            if session.pending.is_empty() {
                continue;
            }
            let mut upload = Vec::new();
            for (id, request) in mem::take(&mut session.pending) {
                let script = script_of(&request).filter(|_| self.plan.lazy_scripts);
                if let Some(script) = script.filter(|it| session.is_new(it)) {
                    session.awaited.push_back(PendingReply::Script);
                    upload.push((None, load(self.mutation.text(script).as_bytes())));
                }
                let mut bytes = Vec::new();
                let encoded = session.codec.encode(&request, &mut bytes);
                let answers = encoded.expect("a request that can be encoded");
                self.mutation.apply(&mut bytes);
                let request_of = Rc::clone(&request);
                session.awaited.push_back(PendingReply::Request {
                    id,
                    request,
                    answers,
                });
                upload.push((Some(request_of), bytes));
            }
            let mut bytes = Vec::new();
            encode_sample(&mut bytes);
            session.awaited.push_back(PendingReply::Sample);
            upload.push((None, bytes));
            self.upload(number, upload);
        }
    }
}

/// Returns the command that loads a script. It comes before the first use on a connection. If the server
/// missed the script and the client loaded it then, the order of requests would change.
fn load(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = CommandWriter::new(&mut bytes);
    writer.command("SCRIPT").arg("LOAD").arg(text);
    writer.finish();
    bytes
}

fn run_id(info: &Value) -> RunId {
    let lines = info.as_text().unwrap_or_default().lines();
    let run = lines.filter_map(|line| line.strip_prefix("run_id:")).next();
    RunId::new(run.unwrap_or_default())
}

const OPENING_COMMANDS: usize = 3;

/// The size of the usual replies. The driver's own buffers would take a run longer to clear than to use.
const ROOM: usize = 2048;

/// How long a client waits for the first answer on a connection.
const CONNECT_MAX: Time = 3 * SECOND;

/// The longest time until a client tries to connect again.
const RECONNECT_MAX: Time = 400 * MILLIS;

/// A batch includes the requests that the client makes within this time.
const WRITE_PAUSE_MAX: Time = 20;
