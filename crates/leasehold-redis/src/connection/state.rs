use std::io;
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
use super::socket::Socket;
use crate::codec::{Codec, Sampler};
use crate::resp::Parser;

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
}

impl Connection {
    pub(crate) fn new(codec: Codec, client: Option<Arc<ClientInfo>>) -> Self {
        Self {
            codec,
            registration: client.map(Registration::new),
            open: None,
            pending: Vec::new(),
        }
    }

    /// Begins a connection to this run of the server.
    pub(crate) fn connect(&mut self, run: RunId, socket: Arc<Socket>) {
        let sampler = self.registration.as_mut().map(|registration| {
            registration.connected();
            Sampler::new(run, &self.codec.user)
        });
        self.open = Some(Pipeline::new(sampler, socket));
    }

    /// Ends the connection, or the attempt to make one. Calls `fail` with each raw request that this ends.
    pub(crate) fn disconnect(&mut self, error: &Error, mut fail: impl FnMut(RawRequestId, Error)) {
        if let Some(open) = self.open.take() {
            let unknown = error.clone().with_unknown_effect();
            open.raw_requests().for_each(|id| fail(id, unknown.clone()));
        }
        for request in self.pending.drain(..) {
            fail(request.id, error.clone());
        }
    }

    /// Closes the connection. Raw requests are not answered.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Adds a request to the next batch. Returns whether there is a connection for it.
    pub(crate) fn push(
        &mut self,
        now: BootInstant,
        encoder: &mut Encoder,
        id: RequestId,
        request: &Request,
    ) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        if let Some(registration) = &mut self.registration
            && registration.is_due_for(request, now)
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
        self.registration.is_some() || self.is_asked()
    }

    /// Returns whether raw requests wait for a connection.
    pub(crate) fn is_asked(&self) -> bool {
        !self.pending.is_empty()
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

    /// Returns whether the kernel has yet to take something.
    pub(crate) fn has_output(&self) -> bool {
        self.open.as_ref().is_some_and(Pipeline::has_output)
    }

    /// Ends the batch and writes what the kernel takes at once. Returns whether that was all.
    ///
    /// # Errors
    ///
    /// If the connection cannot be used further.
    pub(crate) fn write(&mut self) -> io::Result<bool> {
        match &mut self.open {
            Some(open) if open.has_output() => open.write(),
            _ => Ok(true),
        }
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
        handle: impl FnMut(Event),
    ) -> Result<(), Error> {
        self.register(now);
        match &mut self.open {
            Some(open) => open.receive(&self.codec, parser, handle),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
