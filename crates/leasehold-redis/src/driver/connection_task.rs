use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold::clock::within;
use leasehold::env::Env;
use leasehold::store::rough_span;
use leasehold::{Error, ErrorKind};
use leasehold_quorum::MemberIndex;

use super::shared::Shared;
use crate::connection::SLOW_HANDSHAKE;
use crate::connection::connector::{Connector, Opened};
use crate::connection::pipeline::Pipeline;
use crate::connection::socket::broken;

/// Keeps one connection to a member, and opens it again when it breaks.
#[derive(Debug)]
pub(super) struct ConnectionTask {
    pub(super) member: MemberIndex,
    pub(super) connector: Connector,
    pub(super) env: Env,
}

/// The time to open a connection: doubled with each attempt that takes longer, since the server may only be slow.
const CONNECT_MIN: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(40);

/// The pauses between attempts to connect: doubled with each failure, and partly random. A connection on which the server
/// answered a request is no failure.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl ConnectionTask {
    /// Runs until the thread ends.
    pub(super) async fn keep(mut self, shared: Arc<Shared>) {
        let (mut pause, mut limit) = (PAUSE_MIN, CONNECT_MIN);
        loop {
            if self.connector.client.is_none() {
                // Without an engine, the next caller that asks decides when to connect.
                poll_fn(|context| self.poll_asked(&shared, context)).await;
            }
            let error = match self.open(&shared, limit).await {
                Some(Ok(opened)) => {
                    limit = CONNECT_MIN;
                    let (error, has_answered) = self.run(&shared, opened).await;
                    if has_answered {
                        pause = PAUSE_MIN;
                    }
                    error
                }
                Some(Err(error)) => error,
                None => {
                    let error = self.silent(limit);
                    limit = (2 * limit).min(CONNECT_MAX);
                    error
                }
            };
            tracing::debug!(member = %self.connector.member(), %error, "not connected");
            let error = error.with_store(self.connector.member().to_string());
            shared.update(|state, now| {
                state.disconnected(now, self.member, error);
            });
            if self.connector.client.is_none() {
                continue;
            }
            let random = self.env.random_span(pause / 2, pause);
            let clock = shared.clock();
            // A caller that asks now gets the answer of an attempt that begins now.
            let asked = poll_fn(|context| self.poll_asked(&shared, context));
            let _ = within(clock, clock.now() + random, asked).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// Opens a connection; `None` if that takes longer than `limit`.
    async fn open(&mut self, shared: &Shared, limit: Duration) -> Option<Result<Opened, Error>> {
        let (clock, member) = (shared.clock(), self.member);
        let tls = self.connector.tls.clone();
        let address = self.connector.url.address.clone();
        let began = clock.now();
        let mut opening = pin!(self.connector.open(clock.wall()));
        if let Some(opened) = within(clock, began + SLOW_HANDSHAKE, &mut opening).await {
            return Some(opened);
        }
        if let Some(error) = tls.and_then(|tls| tls.unanswered(&address)) {
            // Callers learn the probable reason in time. A server that is only slow still connects.
            tracing::debug!(%member, %error, "slow to connect");
            shared.update(|state, now| {
                let error = error.with_store(shared.members[member].to_string());
                state.disconnected(now, member, error);
            });
        }
        within(clock, began + limit, opening).await
    }

    /// Returns why there is no connection after `limit`.
    fn silent(&self, limit: Duration) -> Error {
        let Connector { tls, url, .. } = &self.connector;
        let unanswered = tls.as_ref().and_then(|tls| tls.unanswered(&url.address));
        unanswered.unwrap_or_else(|| Error::no_connection_within(limit))
    }

    /// Waits until the connection breaks, which other tasks read and write. Returns the reason, and whether the server
    /// answered a request.
    async fn run(&self, shared: &Shared, opened: Opened) -> (Error, bool) {
        let socket = match opened.stream.into_socket() {
            Ok(socket) => Arc::new(socket),
            Err(error) => return (broken(&error), false),
        };
        shared.update(|state, now| {
            let has_plain = opened.has_plain_commands;
            state.connected(now, self.member, has_plain, |connection| {
                connection.connect(opened.run, Arc::clone(&socket));
            });
        });
        tracing::debug!(member = %self.connector.member(), "connected");
        shared
            .reading
            .open(self.member, Arc::clone(&socket), opened.parser);
        let error = poll_fn(|context| self.poll_broken(shared, context)).await;
        shared.reading.close(self.member);
        // The socket closes before the next one is opened, which may carry a release: the state drops it, too.
        socket.abort();
        let has_answered = shared.look(|state| {
            let open = state.connections[self.member].open.as_ref();
            open.is_some_and(Pipeline::has_answered)
        });
        (error, has_answered)
    }

    /// Resolves when the connection breaks, or the server is silent for too long.
    fn poll_broken(&self, shared: &Shared, context: &mut Context<'_>) -> Poll<Error> {
        shared.reading.task(self.member).register(context.waker());
        if let Some(error) = shared.reading.error(self.member) {
            return Poll::Ready(error);
        }
        let silence = shared.look(|state| {
            let open = state.connections[self.member].open.as_ref();
            open.and_then(Pipeline::is_silent)
        });
        match silence {
            Some(span) => {
                let span = rough_span(span);
                let text = format!("the server was silent for {span}; connecting again");
                Poll::Ready(Error::new(ErrorKind::Unreachable, text))
            }
            None => Poll::Pending,
        }
    }

    fn poll_asked(&self, shared: &Shared, context: &mut Context<'_>) -> Poll<()> {
        shared.reading.task(self.member).register(context.waker());
        match shared.look(|state| state.connections[self.member].is_asked()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
