use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock, within};
use leasehold::store::SessionContext;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;

use super::caller::Caller;
use super::failure::Failure;
use super::keep_alives::KeepAlives;
use super::watches::Watches;
use crate::proto::{RangeRequest, Unary};

/// A connection to one server. Its streams end with it.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The address of the server, for messages.
    pub(super) server: String,
    /// The number of the server.
    pub(super) number: usize,
    caller: Caller,
    closed: CancellationToken,
    /// Has a token for each call, watch and renewal under way.
    busy: TaskTracker,
    keep_alives: KeepAlives,
    watches: Watches,
}

impl Connection {
    pub(super) fn new(
        (number, server): (usize, String),
        caller: Caller,
        context: &SessionContext,
        probe: RangeRequest,
    ) -> Arc<Self> {
        let (closed, busy) = (CancellationToken::new(), TaskTracker::new());
        // The connection ends with its runtime, which drops the task.
        let end = closed.clone().drop_guard();
        let clock = Arc::clone(&context.env().clock);
        let (asking, is_busy) = (caller.clone(), busy.clone());
        context.spawn(async move {
            tokio::select! {
                () = silence(&*clock, &asking, &probe, &is_busy) => {}
                () = end.token().cancelled() => {}
            }
        });
        Arc::new(Self {
            keep_alives: KeepAlives::new(context, &caller, &busy, &closed),
            watches: Watches::new(context, &caller, &busy, &closed),
            busy,
            server,
            number,
            caller,
            closed,
        })
    }

    /// Calls a method. Takes as long as the server.
    pub(super) async fn call<T: Unary>(&self, request: T) -> Result<T::Answer, Failure> {
        let _busy = self.busy.token();
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

/// How often a server is asked whether it answers, while a client waits for it.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// How long its answer may take.
const CHECK_LIMIT: Duration = Duration::from_secs(3);

/// Resolves once the server no longer answers. All calls and watches of a connection together cost one request in a while: a
/// watch on a server that was stopped says nothing, and a slow answer can still come.
async fn silence(clock: &dyn Clock, caller: &Caller, probe: &RangeRequest, busy: &TaskTracker) {
    loop {
        clock.sleep_until(clock.now() + CHECK_EVERY).await;
        if busy.is_empty() {
            continue;
        }
        let asked = caller.call(probe.clone());
        match within(clock, clock.now() + CHECK_LIMIT, asked).await {
            None => return,
            Some(Err(Failure::Other(error))) if error.is_unreachable() && !error.is_not_ready() => {
                return;
            }
            Some(_) => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
