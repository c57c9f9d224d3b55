use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::member::{RunId, Sample};
use leasehold::{Error, ErrorKind};
use leasehold_quorum::{BatchReply, Notification, Reply, Request, RequestId};

use super::encoder::Encoder;
use super::raw_request::{RawRequest, RawRequestId};
use super::registration::Registration;
use super::silence::Silence;
use super::socket::{Socket, unreadable};
use crate::codec::{
    Codec, Decoded, SAMPLE_COMMANDS, Sampler, UsualRequest, encode_sample, read_notification,
};
use crate::resp::{CommandWriter, ParseError, Parser, Value};
use crate::scripts::Script;

/// An open connection: the requests to write, and the replies that have yet to arrive.
#[derive(Debug)]
pub(crate) struct Pipeline {
    codec: Codec,
    /// `None` without an engine, which alone needs samples, and whose client alone is present at servers.
    client: Option<(Registration, Sampler)>,
    /// The scripts that were loaded on this connection.
    loaded: Vec<&'static Script>,
    socket: Arc<Socket>,
    /// The bytes to write. The kernel has the first `written` of them.
    output: Vec<u8>,
    written: usize,
    /// The length of `output` up to the end of the last batch.
    batched: usize,
    /// Whether an encrypted socket may keep bytes.
    is_unflushed: bool,
    awaited: VecDeque<PendingReply>,
    /// The replies so far to the first command of `awaited`, and their length in bytes.
    values: Vec<Value>,
    received: usize,
    batch: Vec<(RequestId, Reply)>,
    /// Notifications that came within the batch. They are handed on behind its replies.
    notifications: Vec<Notification>,
    /// Whether the server has answered a batch.
    has_answered: bool,
    silence: Silence,
}

/// The most notifications within a batch. Redis runs the commands of a batch with few others in between.
const NOTIFICATIONS_MAX: usize = 1_000;

/// The most bytes of the replies to one request.
const REPLIES_MAX: usize = 8 * Parser::VALUE_MAX;

/// The most memory that is kept for the next batch.
const KEPT_ROOM: usize = 64 * 1024;

/// Replies that have yet to arrive, in the order of the commands.
#[derive(Debug)]
enum PendingReply {
    /// A usual request, whose script was loaded before.
    Usual(RequestId, UsualRequest),
    Request(Box<PendingRequest>),
    /// The reply to a request that could not be written. It has its place in the order, too.
    Unwritten(RequestId, Error, usize),
    /// The replies to a caller.
    RawRequest(Box<PendingRawRequest>),
    /// The sample that ends a batch.
    Sample,
    /// Replies that the driver does not need.
    Ignored(usize),
}

#[derive(Debug)]
struct PendingRequest {
    id: RequestId,
    request: Request,
    commands: usize,
    /// The first command loads the script.
    loads: bool,
}

#[derive(Debug)]
struct PendingRawRequest {
    id: RawRequestId,
    script: Option<&'static Script>,
    commands: usize,
    loads: bool,
}

/// What to do with bytes that a connection read.
#[derive(Debug)]
pub(crate) enum Event {
    Batch(BatchReply),
    Notification(Notification),
    /// The replies to a caller.
    RawReplies(RawRequestId, Vec<Value>),
}

impl Pipeline {
    /// Returns a new connection.
    pub(crate) fn new(
        codec: Codec,
        client: Option<(Registration, Sampler)>,
        socket: Arc<Socket>,
    ) -> Self {
        Self {
            codec,
            client,
            loaded: Vec::new(),
            socket,
            output: Vec::new(),
            written: 0,
            batched: 0,
            is_unflushed: false,
            awaited: VecDeque::new(),
            values: Vec::new(),
            received: 0,
            batch: Vec::new(),
            notifications: Vec::new(),
            has_answered: false,
            silence: Silence::new(),
        }
    }

    /// Returns the raw requests that the server has yet to answer.
    pub(crate) fn raw_requests(&self) -> impl Iterator<Item = RawRequestId> {
        self.awaited.iter().filter_map(|awaited| match awaited {
            PendingReply::RawRequest(it) => Some(it.id),
            _ => None,
        })
    }

    /// The connection is gone. The next one registers the client again.
    pub(crate) fn into_registration(self) -> Option<Registration> {
        self.client.map(|(registration, _)| registration)
    }

    /// Returns whether the server has answered a batch on this connection.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Returns whether the server has yet to reply.
    pub(crate) fn is_busy(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Time passed, or something was sent or received.
    pub(crate) fn watch(&mut self, now: BootInstant) {
        let owes = self.is_busy();
        self.silence.watch(now, owes);
    }

    /// Returns how long the server was silent, if that is too long.
    pub(crate) fn is_silent(&self) -> Option<Duration> {
        self.silence.over()
    }

    /// Returns when the server will have been silent for too long.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        self.silence.end()
    }

    /// Writes which process the client is, within the next batch, if that is due: before `request`, or in any case.
    fn register(&mut self, now: BootInstant, request: Option<&Request>) {
        if let Some((registration, _)) = &mut self.client
            && match request {
                Some(request) => registration.is_due_for(request, now),
                None => registration.is_due(now),
            }
        {
            let mut writer = CommandWriter::new(&mut self.output);
            registration.write(now, &mut writer);
            let commands = writer.finish();
            self.awaited.push_back(PendingReply::Ignored(commands));
        }
    }

    /// Returns whether the kernel has yet to take something.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty() || self.is_unflushed
    }

    /// Ends the batch, and writes what the kernel takes at once. Returns whether that was all.
    ///
    /// # Errors
    ///
    /// If the connection cannot be used further.
    pub(crate) fn write(&mut self) -> io::Result<bool> {
        if !self.has_output() {
            return Ok(true);
        }
        self.end_batch();
        let written = self.write_rest();
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            written => written?,
        }
        self.output.clear();
        self.output.shrink_to(KEPT_ROOM);
        (self.written, self.batched) = (0, 0);
        Ok(true)
    }

    /// Adds a sample to the requests since the last one.
    fn end_batch(&mut self) {
        if self.output.len() == self.batched {
            return;
        }
        if self.client.is_some() {
            encode_sample(&mut self.output);
            self.awaited.push_back(PendingReply::Sample);
        }
        self.batched = self.output.len();
    }

    fn write_rest(&mut self) -> io::Result<()> {
        while self.written < self.output.len() {
            self.is_unflushed = true;
            match self.socket.write(&self.output[self.written..])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
        }
        self.socket.flush()?;
        self.is_unflushed = false;
        Ok(())
    }

    /// Takes in what the server sent, and passes on what it means.
    ///
    /// # Errors
    ///
    /// If it is no reply to the requests. The connection cannot be used after that.
    pub(crate) fn receive(
        &mut self,
        now: BootInstant,
        parser: &mut Parser,
        mut handle: impl FnMut(Event),
    ) -> Result<(), Error> {
        self.register(now, None);
        loop {
            if let Some(&PendingReply::Usual(id, usual)) = self.awaited.front()
                && self.values.is_empty()
                && let Some((reply, length)) = usual.read(parser.unread())
            {
                parser.skip(length);
                self.silence.heard();
                self.awaited.pop_front();
                self.batch.push((id, reply));
                continue;
            }
            let unread = parser.unread().len();
            let Some(value) = parser.next_value().map_err(unreadable)? else {
                // A notification is no answer.
                if parser.unread().first().is_some_and(|kind| *kind != b'>') {
                    self.silence.heard();
                }
                return Ok(());
            };
            if let Value::Push(parts) = value {
                let notification = read_notification(&self.codec.prefix, &parts);
                self.notifications.extend(notification);
                if self.notifications.len() > NOTIFICATIONS_MAX {
                    return Err(flooded());
                }
            } else {
                self.silence.heard();
                self.received += unread - parser.unread().len();
                if self.received > REPLIES_MAX {
                    return Err(unreadable(ParseError::TooLong(self.received)));
                }
                self.take_in(value, &mut handle)?;
            }
            if self.batch.is_empty() {
                for notification in self.notifications.drain(..) {
                    handle(Event::Notification(notification));
                }
            }
        }
    }

    /// Adds a request of the engine to the next batch.
    pub(crate) fn push(
        &mut self,
        now: BootInstant,
        encoder: &mut Encoder,
        id: RequestId,
        request: &Request,
    ) {
        self.register(now, Some(request));
        self.silence.asked(encoder.term);
        let loads = encoder.script.is_some_and(|script| self.load(script));
        self.awaited.push_back(
            match encoder.encode(&self.codec, request, &mut self.output) {
                Ok(commands) => match encoder.usual.filter(|_| !loads) {
                    Some(usual) => PendingReply::Usual(id, usual),
                    None => PendingReply::Request(Box::new(PendingRequest {
                        id,
                        request: request.clone(),
                        commands: commands + usize::from(loads),
                        loads,
                    })),
                },
                Err(error) => {
                    // Any command has a reply that can be waited for.
                    let mut writer = CommandWriter::new(&mut self.output);
                    writer.command("TIME");
                    let commands = writer.finish() + usize::from(loads);
                    PendingReply::Unwritten(id, error, commands)
                }
            },
        );
    }

    /// Adds the commands of a caller.
    pub(crate) fn push_raw(&mut self, request: &RawRequest) {
        let loads = request.script.is_some_and(|script| self.load(script));
        self.output.extend_from_slice(&request.bytes);
        let pending = PendingRawRequest {
            id: request.id,
            script: request.script,
            commands: request.commands + usize::from(loads),
            loads,
        };
        self.awaited
            .push_back(PendingReply::RawRequest(Box::new(pending)));
    }

    /// Loads a script before its first use on this connection.
    ///
    /// Loading a script only when the server does not know it would change the order of requests: the
    /// release of a cancelled attempt could run before the attempt.
    fn load(&mut self, script: &'static Script) -> bool {
        if self
            .loaded
            .iter()
            .any(|loaded| std::ptr::eq(*loaded, script))
        {
            return false;
        }
        self.loaded.push(script);
        let mut writer = CommandWriter::new(&mut self.output);
        writer.command("SCRIPT").arg("LOAD").arg(script.text);
        writer.finish();
        true
    }

    fn take_in(&mut self, value: Value, handle: &mut impl FnMut(Event)) -> Result<(), Error> {
        self.values.push(value);
        let expected = match self.awaited.front() {
            Some(PendingReply::Usual(_, usual)) => usual.answers(),
            Some(PendingReply::Request(it)) => it.commands,
            Some(PendingReply::RawRequest(it)) => it.commands,
            Some(PendingReply::Unwritten(_, _, commands) | PendingReply::Ignored(commands)) => {
                *commands
            }
            Some(PendingReply::Sample) => SAMPLE_COMMANDS,
            None => return Err(unexpected()),
        };
        if self.values.len() < expected {
            return Ok(());
        }
        match self.awaited.pop_front() {
            Some(PendingReply::Usual(id, usual)) => {
                match self.codec.decode_usual(usual, &self.values) {
                    Decoded::Reply(reply) => self.batch.push((id, reply)),
                    Decoded::NoScript(_) => return Err(forgotten()),
                }
            }
            Some(PendingReply::Request(it)) => self.answer(it.id, &it.request, it.loads)?,
            Some(PendingReply::Unwritten(id, error, _)) => {
                self.batch.push((id, Reply::Failed(error)));
            }
            Some(PendingReply::RawRequest(it)) => {
                let values = std::mem::take(&mut self.values);
                let replies = self.replies_of(it.script, it.loads, values);
                handle(Event::RawReplies(it.id, replies));
            }
            Some(PendingReply::Sample) => {
                if let (Some((_, sampler)), [time, epoch]) =
                    (&mut self.client, self.values.as_slice())
                {
                    let sample = sampler.read(time, epoch)?;
                    self.hand_on(sample, handle);
                }
            }
            Some(PendingReply::Ignored(_)) | None => {}
        }
        self.values.clear();
        self.received = 0;
        Ok(())
    }

    fn answer(&mut self, id: RequestId, request: &Request, loads: bool) -> Result<(), Error> {
        let codec = &self.codec;
        let (loaded, values) = self.values.split_at(usize::from(loads));
        let reply = match (codec.decode(request, values), loaded) {
            (Decoded::Reply(reply), _) => reply,
            // The user may not load scripts. The reply says so.
            (Decoded::NoScript(_), [Value::Error { .. }]) => match codec.decode(request, loaded) {
                Decoded::Reply(reply) => reply,
                Decoded::NoScript(_) => return Err(forgotten()),
            },
            (Decoded::NoScript(_), _) => return Err(forgotten()),
        };
        if let (Reply::Status(status), Some((_, sampler))) = (&reply, &self.client) {
            check_run(sampler.run(), &status.run)?;
        }
        self.batch.push((id, reply));
        Ok(())
    }

    /// Returns the replies to the commands of a caller, without the one to `SCRIPT LOAD`. If the user may not
    /// load scripts, the replies say so.
    fn replies_of(
        &mut self,
        script: Option<&'static Script>,
        loads: bool,
        mut values: Vec<Value>,
    ) -> Vec<Value> {
        let loaded = loads.then(|| values.remove(0));
        let is_unknown = |value: &Value| value.is_error("NOSCRIPT");
        if !values.iter().any(is_unknown) {
            return values;
        }
        // The next raw request loads the script again.
        self.loaded
            .retain(|known| script.is_none_or(|script| !std::ptr::eq(*known, script)));
        if let Some(refused @ Value::Error { .. }) = loaded {
            let unknown = values.iter_mut().filter(|value| is_unknown(value));
            unknown.for_each(|value| value.clone_from(&refused));
        }
        values
    }

    fn hand_on(&mut self, sample: Sample, handle: &mut impl FnMut(Event)) {
        if !self.batch.is_empty() {
            // The next batch probably has as many.
            let room = Vec::with_capacity(self.batch.len());
            let replies = std::mem::replace(&mut self.batch, room);
            self.has_answered = true;
            handle(Event::Batch(BatchReply { sample, replies }));
        }
    }
}

/// A connection ends with the run of its server, unless a proxy reconnects by itself. The next connection
/// learns the run.
fn check_run(run: &RunId, now: &RunId) -> Result<(), Error> {
    if run == now {
        return Ok(());
    }
    let text = format!(
        "the server restarted (run {now}, before {run}) and the connection to it stayed open: a proxy \
         in between reconnects by itself; use the address of the server, or a proxy that closes the \
         client's connection when the server closes its own"
    );
    Err(Error::new(ErrorKind::Unreachable, text))
}

fn unexpected() -> Error {
    let text = "the server sent a reply to no command; is it a Redis server?";
    Error::new(ErrorKind::InvalidResponse, text)
}

fn flooded() -> Error {
    let text = format!(
        "the server sent {NOTIFICATIONS_MAX} notifications in place of a reply; is it a Redis server, or does another \
         user publish to this client's channel?"
    );
    Error::new(ErrorKind::InvalidResponse, text)
}

/// The next connection loads the scripts again. Other requests may already be behind this one, so
/// sending it again would change their order.
fn forgotten() -> Error {
    let text = "the server forgot the scripts (SCRIPT FLUSH); connecting again";
    Error::new(ErrorKind::Unreachable, text)
}
