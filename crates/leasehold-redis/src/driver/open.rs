use std::collections::VecDeque;
use std::sync::Arc;

use leasehold::clock::BootInstant;
use leasehold::{Error, ErrorKind, RunId, Sample};
use leasehold_quorum::{BatchReply, Notification, Reply, Request, RequestId};
use tokio::sync::oneshot;

use super::socket::WriteHalf;
use crate::protocol::{
    Codec, Decoded, SAMPLE_COMMANDS, Sampler, Script, encode_sample, read_notification, script_of,
};
use crate::resp::{CommandWriter, Value};

/// An open connection.
#[derive(Debug)]
pub(super) struct Open {
    sampler: Sampler,
    /// The scripts that were loaded on this connection.
    loaded: Vec<&'static Script>,
    /// `None` if only the I/O thread can write.
    pub(super) half: Option<Arc<WriteHalf>>,
    pub(super) output: Vec<u8>,
    awaited: VecDeque<Awaited>,
    /// The replies so far to the first command of `awaited`.
    values: Vec<Value>,
    batch: Vec<(RequestId, Reply)>,
    /// Notifications that came within the batch. They are handed on behind its replies.
    notifications: Vec<Notification>,
    /// When the client last told the server who it is.
    pub(super) registered: BootInstant,
}

/// Replies that have yet to arrive, in the order of the commands.
#[derive(Debug)]
enum Awaited {
    Request {
        asker: Asker,
        request: Request,
        commands: usize,
        /// The first command loads the script.
        loads: bool,
    },
    /// The reply to a request that could not be written. It has its place in the order, too.
    Unwritten(Asker, Error, usize),
    /// The sample that ends a batch.
    Sample,
    /// Replies that the driver does not need.
    Ignored(usize),
}

/// The part of the program that asked.
#[derive(Debug)]
pub(super) enum Asker {
    Engine(RequestId),
    Caller(oneshot::Sender<Result<Reply, Error>>),
}

/// What to do with bytes that a connection read.
#[derive(Debug)]
pub(super) enum Event {
    Batch(BatchReply),
    Notification(Notification),
}

impl Open {
    /// Returns a connection to this run of the server.
    pub(super) fn new(now: BootInstant, run: RunId, user: &str, half: Option<WriteHalf>) -> Self {
        Self {
            sampler: Sampler::new(run, user),
            loaded: Vec::new(),
            half: half.map(Arc::new),
            output: Vec::new(),
            awaited: VecDeque::new(),
            values: Vec::new(),
            batch: Vec::new(),
            notifications: Vec::new(),
            registered: now,
        }
    }

    /// Ends the connection. Callers that asked something get `error`.
    pub(super) fn fail(self, error: &Error) {
        let error = error.clone().with_unknown_effect();
        for awaited in self.awaited {
            if let Awaited::Request {
                asker: Asker::Caller(caller),
                ..
            }
            | Awaited::Unwritten(Asker::Caller(caller), ..) = awaited
            {
                // A failed sending means that the caller is gone.
                let _ = caller.send(Err(error.clone()));
            }
        }
    }

    /// Returns whether the server has yet to reply.
    pub(super) fn is_busy(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Adds commands whose replies do not matter.
    pub(super) fn push_commands(&mut self, write: impl FnOnce(&mut CommandWriter<'_>)) {
        let mut writer = CommandWriter::new(&mut self.output);
        write(&mut writer);
        let commands = writer.finish();
        self.awaited.push_back(Awaited::Ignored(commands));
    }

    /// Ends the batch with a sample. Returns its bytes. `spare` becomes the next buffer.
    pub(super) fn take_batch(&mut self, spare: Vec<u8>) -> Vec<u8> {
        encode_sample(&mut self.output);
        self.awaited.push_back(Awaited::Sample);
        std::mem::replace(&mut self.output, spare)
    }

    /// Takes in values that the server sent, and passes on what they mean.
    ///
    /// # Errors
    ///
    /// If they are no replies to the requests. The connection cannot be used after that.
    pub(super) fn receive(
        &mut self,
        codec: &Codec,
        values: &mut Vec<Value>,
        mut handle: impl FnMut(Event),
    ) -> Result<(), Error> {
        for value in values.drain(..) {
            if let Value::Push(parts) = value {
                let notification = read_notification(&codec.prefix, &parts);
                self.notifications.extend(notification);
            } else {
                self.take_in(codec, value, &mut handle)?;
            }
            if self.batch.is_empty() {
                for notification in self.notifications.drain(..) {
                    handle(Event::Notification(notification));
                }
            }
        }
        Ok(())
    }

    pub(super) fn push(&mut self, codec: &Codec, asker: Asker, request: Request) {
        let loads = self.load(&request);
        self.awaited
            .push_back(match codec.encode(&request, &mut self.output) {
                Ok(commands) => Awaited::Request {
                    asker,
                    request,
                    commands: commands + usize::from(loads),
                    loads,
                },
                Err(error) => {
                    // Any command has a reply that can be waited for.
                    let mut writer = CommandWriter::new(&mut self.output);
                    writer.command("TIME");
                    let commands = writer.finish() + usize::from(loads);
                    Awaited::Unwritten(asker, error, commands)
                }
            });
    }

    /// Loads the script of a request, if it is the first one on this connection.
    ///
    /// Loading a script only when the server does not know it would change the order of requests: the
    /// release of a cancelled attempt could run before the attempt.
    fn load(&mut self, request: &Request) -> bool {
        let Some(script) = script_of(request) else {
            return false;
        };
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

    fn take_in(
        &mut self,
        codec: &Codec,
        value: Value,
        handle: &mut impl FnMut(Event),
    ) -> Result<(), Error> {
        self.values.push(value);
        let expected = match self.awaited.front() {
            Some(
                Awaited::Request { commands, .. }
                | Awaited::Unwritten(_, _, commands)
                | Awaited::Ignored(commands),
            ) => *commands,
            Some(Awaited::Sample) => SAMPLE_COMMANDS,
            None => return Err(unexpected()),
        };
        if self.values.len() < expected {
            return Ok(());
        }
        match self.awaited.pop_front() {
            Some(Awaited::Request {
                asker,
                request,
                loads,
                ..
            }) => self.answer(codec, asker, &request, loads)?,
            Some(Awaited::Unwritten(asker, error, _)) => self.reply(asker, Reply::Failed(error)),
            Some(Awaited::Sample) => {
                if let [time, mark] = self.values.as_slice() {
                    let sample = self.sampler.read(time, mark)?;
                    self.end_batch(sample, handle);
                }
            }
            Some(Awaited::Ignored(_)) | None => {}
        }
        self.values.clear();
        Ok(())
    }

    fn answer(
        &mut self,
        codec: &Codec,
        asker: Asker,
        request: &Request,
        loads: bool,
    ) -> Result<(), Error> {
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
        self.reply(asker, reply);
        Ok(())
    }

    fn reply(&mut self, asker: Asker, reply: Reply) {
        match asker {
            Asker::Engine(id) => self.batch.push((id, reply)),
            // A failed sending means that the caller is gone.
            Asker::Caller(caller) => drop(caller.send(Ok(reply))),
        }
    }

    fn end_batch(&mut self, sample: Sample, handle: &mut impl FnMut(Event)) {
        let replies = std::mem::take(&mut self.batch);
        if !replies.is_empty() {
            handle(Event::Batch(BatchReply { sample, replies }));
        }
    }
}

fn unexpected() -> Error {
    let text = "the server sent a reply to no command; is it a Redis server?";
    Error::new(ErrorKind::Garbled, text)
}

/// The next connection loads the scripts again. Other requests may already be behind this one, so
/// sending it again would change their order.
fn forgotten() -> Error {
    let text = "the server forgot the scripts (SCRIPT FLUSH); connecting again";
    Error::new(ErrorKind::Unreachable, text)
}
