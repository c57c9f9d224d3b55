use std::sync::Arc;

use leasehold::store::SessionContext;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::caller::Caller;
use super::failure::Failure;
use super::keep_alives::KeepAlives;
use super::watches::Watches;
use crate::proto::Unary;

/// A connection to one server. Its streams end with it.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The address of the server, for messages.
    pub(super) server: String,
    /// The number of the server.
    pub(super) number: usize,
    caller: Caller,
    closed: CancellationToken,
    keep_alives: KeepAlives,
    watches: Watches,
}

impl Connection {
    pub(super) fn new(
        (number, server): (usize, String),
        caller: Caller,
        context: &SessionContext,
    ) -> Arc<Self> {
        let closed = CancellationToken::new();
        // The connection ends with its runtime, which drops the task.
        let end = closed.clone().drop_guard();
        context.spawn(async move { end.token().cancelled().await });
        Arc::new(Self {
            keep_alives: KeepAlives::new(context, &caller, &closed),
            watches: Watches::new(context, &caller, &closed),
            server,
            number,
            caller,
            closed,
        })
    }

    /// Calls a method. Takes as long as the server.
    pub(super) async fn call<T: Unary>(&self, request: T) -> Result<T::Answer, Failure> {
        let answer = tokio::select! {
            answer = self.caller.call(request) => answer,
            () = self.closed.cancelled() => Err(Failure::of(&Status::unavailable(
                "the connection was closed, because the server does not answer",
            ))),
        };
        answer.map_err(|failure| failure.at(&self.server))
    }

    /// Returns the stream that renews leases.
    pub(crate) fn keep_alives(&self) -> &KeepAlives {
        &self.keep_alives
    }

    /// Returns the stream of watches.
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    pub(super) fn is_open(&self) -> bool {
        !self.closed.is_cancelled()
    }

    /// Ends all calls and streams.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
