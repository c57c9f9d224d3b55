use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use leasehold::member::RunId;
use leasehold_quorum::{BatchReply, Notification, Reply, Request, RequestId};
use leasehold_redis::codec::{Codec, Decoded, SAMPLE_COMMANDS, Sampler, read_notification};
use leasehold_redis::resp::{Parser, Value};
use leasehold_redis::scripts::Script;

/// The driver's state of one member: its connection, and the replies that it expects.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) codec: Codec,
    /// The connection, by its number.
    pub(crate) connection: Option<usize>,
    sampler: Option<Sampler>,
    /// Requests that the next flush writes.
    pub(crate) pending: Vec<(RequestId, Rc<Request>)>,
    /// The scripts that were loaded on this connection.
    loaded: Vec<&'static Script>,
    pub(crate) awaited: VecDeque<PendingReply>,
    parser: Parser,
    /// The replies so far to the first entry of `awaited`.
    values: Vec<Value>,
    replies: Vec<(RequestId, Reply)>,
    /// Notifications that arrived within a batch. The driver hands them in after the batch's replies.
    notifications: Vec<Notification>,
    /// How many attempts to connect failed in a row.
    pub(crate) failures: u32,
}

/// Replies that the client expects.
#[derive(Debug)]
pub(crate) enum PendingReply {
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
pub(crate) enum Input {
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
    pub(crate) fn is_new(&mut self, script: &'static Script) -> bool {
        let is_new = !self.loaded.iter().any(|it| std::ptr::eq(*it, script));
        if is_new {
            self.loaded.push(script);
        }
        is_new
    }

    pub(crate) fn is_up(&self) -> bool {
        self.sampler.is_some()
    }

    pub(crate) fn reset(&mut self) {
        let codec = self.codec.clone();
        let failures = self.failures;
        *self = Self::new(codec);
        self.failures = failures;
    }

    /// Reads what arrived.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<Input> {
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

fn run_id(info: &Value) -> RunId {
    let lines = info.as_text().unwrap_or_default().lines();
    let run = lines.filter_map(|line| line.strip_prefix("run_id:")).next();
    RunId::new(run.unwrap_or_default())
}

const OPENING_COMMANDS: usize = 3;

/// The size of the usual replies. The driver's own buffers would take a run longer to clear than to use.
const ROOM: usize = 2048;
