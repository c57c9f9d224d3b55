use std::sync::Arc;

use leasehold::Error;
use leasehold::look::ClientInfo;
use leasehold::member::RunId;

use super::pipeline::Pipeline;
use super::raw_request::{RawRequest, RawRequestId};
use super::registration::Registration;
use super::socket::Socket;
use crate::codec::{Codec, Sampler};

/// The connection to one member, without its I/O.
#[derive(Debug)]
pub(crate) struct Connection {
    codec: Codec,
    /// The client of the engine, if there is an engine. An open connection has it.
    registration: Option<Registration>,
    /// The requests to write, and the replies that have yet to arrive.
    pub(crate) open: Option<Pipeline>,
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
        let client = self.registration.take().map(|mut registration| {
            registration.connected();
            (registration, Sampler::new(run, &self.codec.user))
        });
        self.open = Some(Pipeline::new(self.codec.clone(), client, socket));
    }

    /// Ends the connection, or the attempt to make one. Calls `fail` with each raw request that this ends.
    pub(crate) fn disconnect(&mut self, error: &Error, mut fail: impl FnMut(RawRequestId, Error)) {
        if let Some(open) = self.open.take() {
            let unknown = error.clone().with_unknown_effect();
            open.raw_requests().for_each(|id| fail(id, unknown.clone()));
            self.registration = open.into_registration();
        }
        for request in self.pending.drain(..) {
            fail(request.id, error.clone());
        }
    }

    /// Adds a raw request to the next batch, or keeps it until there is a connection.
    pub(crate) fn ask(&mut self, request: RawRequest) {
        match &mut self.open {
            Some(open) => open.push_raw(&request),
            None => self.pending.push(request),
        }
    }

    /// Adds the raw requests that waited for the connection, except those that are over.
    pub(crate) fn ask_pending(&mut self, is_open: impl Fn(RawRequestId) -> bool) {
        for request in std::mem::take(&mut self.pending) {
            if is_open(request.id) {
                self.ask(request);
            }
        }
    }

    /// Returns whether raw requests wait for a connection.
    pub(crate) fn is_asked(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes and reads requests.
    pub(crate) fn codec(&self) -> &Codec {
        &self.codec
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
