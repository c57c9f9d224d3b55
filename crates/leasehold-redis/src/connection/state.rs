use std::sync::Arc;
use std::time::Duration;

use leasehold::Error;
use leasehold::clock::BootInstant;
use leasehold::store::{ClientInfo, RunId};
use leasehold_quorum::{Request, RequestId};

use super::encoder::Encoder;
use super::pipeline::{Event, Pipeline};
use super::raw_request::{RawRequest, RawRequestId};
use super::registration::Registration;
use super::socket::WriteHalf;
use crate::codec::{Codec, Sampler};
use crate::resp::Value;

/// The connection to one member, without its I/O: the requests to write, and the replies that have yet to
/// arrive.
#[derive(Debug)]
pub(crate) struct Connection {
    codec: Codec,
    /// The client of the engine, if there is an engine.
    registration: Option<Registration>,
    open: Option<Pipeline>,
    /// Raw requests that wait for a connection.
    pending: Vec<RawRequest>,
    /// A thread is writing, perhaps on the connection before this one.
    writing: bool,
    /// A batch that the I/O thread has to write on.
    rest: Option<Batch>,
    /// The task of the connection wrote a rest. It also writes what was added meanwhile, since no other
    /// thread learns when it is done.
    task_writes: bool,
    /// How many connections there were. A batch of an earlier one is thrown away.
    opened: u64,
    /// An empty buffer, for the next batch.
    spare: Vec<u8>,
}

/// Bytes for a member.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) member: usize,
    connection: u64,
    /// `None` if only the I/O thread can write.
    pub(crate) half: Option<Arc<WriteHalf>>,
    pub(crate) bytes: Vec<u8>,
    /// How many of the bytes are written.
    pub(crate) written: usize,
}

/// The most memory that is kept for the next batch.
const KEPT_ROOM: usize = 64 * 1024;

impl Connection {
    pub(crate) fn new(codec: Codec, client: Option<Arc<ClientInfo>>) -> Self {
        Self {
            codec,
            registration: client.map(Registration::new),
            open: None,
            pending: Vec::new(),
            writing: false,
            rest: None,
            task_writes: false,
            opened: 0,
            spare: Vec::new(),
        }
    }

    /// Begins a connection to this run of the server.
    pub(crate) fn connect(&mut self, run: RunId, half: Option<WriteHalf>) {
        self.opened += 1;
        let sampler = self.registration.as_mut().map(|registration| {
            registration.connected();
            Sampler::new(run, &self.codec.user)
        });
        self.open = Some(Pipeline::new(sampler, half));
    }

    /// Ends the connection, or the attempt to make one. Calls `fail` with each raw request that this ends.
    pub(crate) fn disconnect(&mut self, error: &Error, mut fail: impl FnMut(RawRequestId, Error)) {
        if self.rest.take().is_some() {
            self.writing = false;
        }
        self.task_writes = false;
        if let Some(open) = self.open.take() {
            let unknown = error.clone().with_unknown_effect();
            open.raw_requests().for_each(|id| fail(id, unknown.clone()));
        }
        for request in self.pending.drain(..) {
            fail(request.id, error.clone());
        }
    }

    /// Adds a request to the next batch. Returns whether there is a connection for it.
    pub(crate) fn push(
        &mut self,
        now: BootInstant,
        encoder: &mut Encoder,
        id: RequestId,
        request: Request,
    ) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        if let Some(registration) = &mut self.registration
            && registration.is_due_for(&request, now)
        {
            open.push_commands(|writer| registration.write(now, writer));
        }
        open.push(&self.codec, encoder, id, request);
        true
    }

    /// Adds a raw request to the next batch, or keeps it until there is a connection. Returns whether there is
    /// one.
    pub(crate) fn ask(&mut self, request: RawRequest) -> bool {
        match &mut self.open {
            Some(open) => open.push_raw(&request),
            None => self.pending.push(request),
        }
        self.open.is_some()
    }

    /// Adds the raw requests that waited for the connection, except those that are over.
    pub(crate) fn ask_pending(&mut self, is_open: impl Fn(RawRequestId) -> bool) {
        for request in std::mem::take(&mut self.pending) {
            if is_open(request.id) {
                self.ask(request);
            }
        }
    }

    /// Returns whether a connection is needed. The engine always needs one.
    pub(crate) fn is_wanted(&self) -> bool {
        self.registration.is_some() || !self.pending.is_empty()
    }

    /// Writes and reads requests.
    pub(crate) fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Writes again which process the client is, within the next batch, if that is due.
    fn register(&mut self, now: BootInstant) {
        if let (Some(registration), Some(open)) = (&mut self.registration, &mut self.open)
            && registration.is_due(now)
        {
            open.push_commands(|writer| registration.write(now, writer));
        }
    }

    /// Time passed, or something was sent or received.
    pub(crate) fn watch(&mut self, now: BootInstant) {
        if let Some(open) = &mut self.open {
            let owes = open.is_busy();
            open.silence.watch(now, owes);
        }
    }

    /// Returns how long the server was silent, if that is too long.
    pub(crate) fn is_silent(&self) -> Option<Duration> {
        self.open.as_ref()?.silence.over()
    }

    /// Returns when the server will have been silent for too long.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        self.open.as_ref()?.silence.end()
    }

    /// Returns whether the server has yet to reply.
    pub(crate) fn is_busy(&self) -> bool {
        self.open.as_ref().is_some_and(Pipeline::is_busy)
    }

    /// Returns whether there is a connection.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether a thread is writing.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing
    }

    /// Returns whether there is something to write that no thread is writing.
    pub(crate) fn has_output(&self) -> bool {
        let waits = |open: &Pipeline| !open.output.is_empty();
        !self.writing && self.open.as_ref().is_some_and(waits)
    }

    /// Returns whether the task of the connection has to write.
    pub(crate) fn needs_task(&self) -> bool {
        let is_encrypted = |open: &Pipeline| open.half.is_none();
        let is_for_task = self.task_writes || self.open.as_ref().is_some_and(is_encrypted);
        self.rest.is_some() || (self.has_output() && is_for_task)
    }

    /// Takes the next batch, if no other is being written and any thread can write it. The caller must
    /// write it and then call [`Connection::finish`].
    pub(crate) fn take(&mut self, member: usize) -> Option<Batch> {
        if self.has_output() && !self.needs_task() {
            return self.next_batch(member);
        }
        None
    }

    /// Takes what the task of the connection has to write.
    pub(crate) fn take_for_task(&mut self, member: usize) -> Option<Batch> {
        self.task_writes |= self.rest.is_some();
        if self.needs_task() {
            return self.rest.take().or_else(|| self.next_batch(member));
        }
        self.task_writes = false;
        None
    }

    fn next_batch(&mut self, member: usize) -> Option<Batch> {
        let open = self.open.as_mut()?;
        self.writing = true;
        let spare = std::mem::take(&mut self.spare);
        Some(Batch {
            member,
            connection: self.opened,
            half: open.half.clone(),
            bytes: open.take_batch(spare),
            written: 0,
        })
    }

    /// Gives up a batch of a connection that broke.
    pub(crate) fn abort(&mut self, batch: Batch) {
        drop(batch);
        self.writing = false;
    }

    /// Takes back a batch. If it is not written to the end, the task of the connection goes on.
    pub(crate) fn finish(&mut self, batch: Batch) {
        let is_current = self.open.is_some() && batch.connection == self.opened;
        if is_current && batch.written < batch.bytes.len() {
            self.rest = Some(batch);
            return;
        }
        self.writing = false;
        let mut bytes = batch.bytes;
        if bytes.capacity() <= KEPT_ROOM {
            bytes.clear();
            self.spare = bytes;
        }
    }

    /// Takes in values that the server sent, and passes on what they mean.
    ///
    /// # Errors
    ///
    /// If they are no replies to the requests. The connection cannot be used after that.
    pub(crate) fn receive(
        &mut self,
        now: BootInstant,
        values: &mut Vec<Value>,
        handle: impl FnMut(Event),
    ) -> Result<(), Error> {
        self.register(now);
        match &mut self.open {
            Some(open) => open.receive(&self.codec, values, handle),
            None => Ok(()),
        }
    }
}

impl Batch {
    /// Writes as much as the kernel takes at once. The task of the connection finds out what is wrong if
    /// that fails.
    pub(crate) fn write(&mut self) {
        if let Some(half) = &self.half
            && let Ok(count) = half.try_write(&self.bytes[self.written..])
        {
            self.written += count;
        }
    }

    /// The bytes that are not written yet.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
