use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use leasehold::clock::within;
use leasehold::env::Env;
use leasehold::{Error, ErrorKind};
use tokio::io::AsyncWrite as _;

use super::shared::Shared;
use crate::connection::SLOW_HANDSHAKE;
use crate::connection::connector::{Connector, Opened};
use crate::connection::socket::{ReadHalf, broken, unreadable};
use crate::connection::state::Batch;
use crate::resp::{Parser, Value};

/// Keeps one connection to a member, and opens it again when it breaks.
#[derive(Debug)]
pub(super) struct ConnectionTask {
    pub(super) member: usize,
    pub(super) connector: Connector,
    pub(super) env: Env,
}

/// The longest time to open a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The pauses between attempts to connect: doubled with each failure, and partly random.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A connection that breaks sooner is a failure to connect.
const STABLE_AFTER: Duration = Duration::from_secs(2);

impl ConnectionTask {
    /// Runs until the thread ends.
    pub(super) async fn keep(mut self, shared: Arc<Shared>) {
        let mut pause = PAUSE_MIN;
        loop {
            poll_fn(|context| self.poll_wanted(&shared, context)).await;
            let error = match self.open(&shared).await {
                Ok(opened) => {
                    let since = shared.clock().now();
                    let error = self.run(&shared, opened).await;
                    if shared.clock().now().since(since) >= STABLE_AFTER {
                        pause = PAUSE_MIN;
                    }
                    error
                }
                Err(error) => error,
            };
            tracing::debug!(member = %self.connector.member(), %error, "not connected");
            let error = error.with_store(self.connector.member().as_str());
            shared.update(|state, now| {
                state.disconnected(now, self.member, error);
            });
            // What the old socket has not delivered must be thrown away before a new one can carry a
            // release, and a thread may still write to it.
            poll_fn(|context| self.poll_unwritten(&shared, context)).await;
            if self.connector.client.is_none() {
                // The next caller that asks decides when to connect again.
                continue;
            }
            let random = self.env.random_span(pause / 2, pause);
            let clock = shared.clock();
            clock.sleep_until(clock.now() + random).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    async fn open(&mut self, shared: &Shared) -> Result<Opened, Error> {
        let (clock, member) = (shared.clock(), self.member);
        let (tls, address) = (
            Arc::clone(&self.connector.tls),
            self.connector.url.address.clone(),
        );
        let began = clock.now();
        let mut opening = pin!(self.connector.open(clock.wall()));
        if let Some(opened) = within(clock, began + SLOW_HANDSHAKE, &mut opening).await {
            return opened;
        }
        if let Some(error) = tls.unanswered(&address) {
            // Callers learn the probable reason in time. A server that is only slow still connects.
            tracing::debug!(member, %error, "slow to connect");
            shared.update(|state, now| {
                let error = error.with_store(shared.members[member].as_str());
                state.disconnected(now, member, error);
            });
        }
        let opened = within(clock, began + CONNECT_MAX, opening).await;
        opened.unwrap_or_else(|| {
            let silent = || {
                let text = format!("no connection within {CONNECT_MAX:?}");
                Error::new(ErrorKind::Unreachable, text)
            };
            Err(tls.unanswered(&address).unwrap_or_else(silent))
        })
    }

    /// Reads and writes until the connection breaks. Returns the reason.
    async fn run(&self, shared: &Shared, opened: Opened) -> Error {
        let (read, write) = opened.stream.split();
        shared.update(|state, now| {
            let has_plain = opened.has_plain_commands;
            state.connected(now, self.member, has_plain, |connection| {
                connection.connect(opened.run, write);
            });
        });
        tracing::debug!(member = %self.connector.member(), "connected");
        let mut open = OpenConnection {
            member: self.member,
            shared,
            read,
            parser: opened.parser,
            values: Vec::new(),
            batch: None,
            unflushed: false,
        };
        let error = poll_fn(|context| open.poll(context)).await;
        if let Some(batch) = open.batch.take() {
            shared.lock().connections[self.member].abort(batch);
        }
        open.read.abort();
        error
    }

    fn poll_wanted(&self, shared: &Shared, context: &mut Context<'_>) -> Poll<()> {
        shared.task(self.member).waker.register(context.waker());
        match shared.lock().connections[self.member].is_wanted() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn poll_unwritten(&self, shared: &Shared, context: &mut Context<'_>) -> Poll<()> {
        shared.task(self.member).waker.register(context.waker());
        if shared.lock().connections[self.member].is_writing() {
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// An open connection, as its task has it.
struct OpenConnection<'a> {
    member: usize,
    shared: &'a Shared,
    read: ReadHalf,
    parser: Parser,
    values: Vec<Value>,
    /// What only this task can write: the rest of a batch, or anything if the stream is encrypted.
    batch: Option<Batch>,
    unflushed: bool,
}

impl OpenConnection<'_> {
    /// Reads and writes until the connection breaks, or the server is silent for too long. Reads first: the
    /// last words of a server are the reason for closing the connection.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        let signal = self.shared.task(self.member);
        signal.waker.register(context.waker());
        while let Poll::Ready(read) = self.read.poll_read(context, self.parser.room()) {
            let received = match read {
                Ok(0) => Err(broken(&io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.receive(count),
                Err(error) => Err(broken(&error)),
            };
            if let Err(error) = received {
                return Poll::Ready(error);
            }
        }
        let is_due = signal.take();
        if is_due && let Some(span) = self.shared.lock().connections[self.member].is_silent() {
            let text = format!("the server was silent for {span:?}; connecting again");
            return Poll::Ready(Error::new(ErrorKind::Unreachable, text));
        }
        if (is_due || self.batch.is_some() || self.unflushed)
            && let Poll::Ready(Err(error)) = self.poll_write(context)
        {
            return Poll::Ready(broken(&error));
        }
        Poll::Pending
    }

    fn receive(&mut self, count: usize) -> Result<(), Error> {
        self.parser.filled(count);
        let parsed = loop {
            match self.parser.next_value() {
                Ok(Some(value)) => self.values.push(value),
                Ok(None) => break Ok(()),
                Err(error) => break Err(unreadable(error)),
            }
        };
        if !self.values.is_empty() {
            let received = self
                .shared
                .update(|state, now| state.receive(now, self.member, &mut self.values));
            received?;
        }
        parsed
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let Some(batch) = &mut self.batch else {
                if self.unflushed
                    && let Some(stream) = self.read.encrypted()
                {
                    ready!(Pin::new(stream).poll_flush(context))?;
                }
                self.unflushed = false;
                let mut state = self.shared.lock();
                self.batch = state.connections[self.member].take_for_task(self.member);
                if self.batch.is_none() {
                    let is_flushing = state.is_flushing();
                    drop(state);
                    if is_flushing {
                        // All is written.
                        self.shared.update(|_, _| ());
                    }
                    return Poll::Ready(Ok(()));
                }
                continue;
            };
            if batch.rest().is_empty() {
                let batch = self.batch.take();
                let mut state = self.shared.lock();
                if let Some(batch) = batch {
                    state.connections[self.member].finish(batch);
                }
                continue;
            }
            let count = match (self.read.encrypted(), &batch.half) {
                (Some(stream), _) => {
                    self.unflushed = true;
                    ready!(Pin::new(stream).poll_write(context, batch.rest()))?
                }
                (None, Some(half)) => {
                    ready!(half.poll_ready(context))?;
                    match half.try_write(batch.rest()) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                        written => written?,
                    }
                }
                (None, None) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            batch.written += count;
        }
    }
}
