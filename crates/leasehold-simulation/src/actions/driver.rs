use std::mem;
use std::rc::Rc;

use leasehold::{Error, ErrorKind};
use leasehold_quorum::{MemberIndex, Request};
use leasehold_redis::codec::{encode_sample, inbox, script_of};
use leasehold_redis::resp::CommandWriter;

use crate::history::What;
use crate::state::agenda::Action;
use crate::state::program::Purpose;
use crate::state::server::ServerState;
use crate::state::session::{Input, PendingReply, Session};
use crate::state::simulation::Simulation;
use crate::time::{MILLIS, SECOND, Time};

impl Simulation {
    /// Connects a client to a member.
    pub(crate) fn connect(&mut self, client: usize, member: MemberIndex) {
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
        for (operation, purpose) in &it.operations {
            if let Purpose::Acquire { wait, .. } = purpose
                && let Some(owner) = it.engine.owner_of(*operation)
            {
                self.owners.rename(*wait, owner.to_ascii().to_vec());
            }
        }
        while let Some((members, id, request)) = it.engine.poll_transmit() {
            if let Request::Release {
                lock_request,
                requeue: Some(next),
                ..
            } = &request
                && let Some(wait) = self.owners.wait(&lock_request.owner.to_ascii())
            {
                let next = next.owner.to_ascii().to_vec();
                self.owners.rename(wait, next);
            }
            let request = Rc::new(request);
            for member in members.iter() {
                it.sessions[member].pending.push((id, Rc::clone(&request)));
            }
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
        for member in self.clients[client].sessions.keys() {
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

/// How long a client waits for the first answer on a connection.
const CONNECT_MAX: Time = 3 * SECOND;

/// The longest time until a client tries to connect again.
const RECONNECT_MAX: Time = 400 * MILLIS;

/// A batch includes the requests that the client makes within this time.
const WRITE_PAUSE_MAX: Time = 20;
