//! One connection, as its callers see it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock};
use leasehold::store::locked;
use leasehold::{Error, ErrorKind};
use tokio::sync::{mpsc, oneshot};

use super::code::{Code, Meaning};
use super::driver::Driver;
use super::jute::{Decoder, Encoder, Malformed};
use super::line::Line;
use super::message::{self, Effects, Op, Outcome, Stat};
use super::session_term::SessionTerm;
use super::shared::{Opened, Outgoing, Reply, Shared};
use super::socket::Socket;

/// A connection to one server, on which the session is open.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The session. A server that forgot it may open another one.
    pub(crate) session: i64,
    /// The timeout that the server granted.
    pub(crate) timeout: Duration,
    /// The server, for messages.
    pub(crate) server: String,
    queue: mpsc::UnboundedSender<Vec<Outgoing>>,
    shared: Arc<Shared>,
    driver: Arc<Driver>,
    clock: Arc<dyn Clock>,
}

/// The answer to a request that the server carried out.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    /// When the request was sent, or earlier.
    pub(crate) sent: BootInstant,
    /// Until when the session lives at least, if this answer proves something.
    pub(crate) lives_until: Option<BootInstant>,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    reply: Option<oneshot::Receiver<Reply>>,
    sent: BootInstant,
    decode: fn(&mut Decoder<'_>) -> Result<T, Malformed>,
    server: String,
}

/// An answer, or why the server refuses.
pub(crate) type Answered<T> = Result<Answer<T>, Code>;

/// Reads the answer to a transaction. An error names the part that failed.
pub(crate) fn committed(answer: Answered<Outcome>) -> Result<Answer<Effects>, (usize, Code)> {
    let answer = answer.map_err(|code| (0, code))?;
    answer.value.map(|value| Answer {
        value,
        sent: answer.sent,
        lives_until: answer.lives_until,
    })
}

/// A notification to come: resolves at the next change of a node that the server notifies of, or when the connection ends.
/// Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Change {
    path: String,
    notified: oneshot::Receiver<()>,
    shared: Arc<Shared>,
}

impl Future for Change {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // An error is the end of the connection.
        Pin::new(&mut self.notified).poll(context).map(drop)
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.notified.close();
        let mut watches = locked(&self.shared.watches);
        let Some(watches) = watches.as_mut() else {
            return;
        };
        if let Some(waiting) = watches.get_mut(&self.path) {
            waiting.retain(|other| !other.is_closed());
            if waiting.is_empty() {
                watches.remove(&self.path);
            }
        }
    }
}

impl Connection {
    /// Sends requests in one go. The server carries them out, and answers, in this order. Dropping an answer takes
    /// nothing back.
    fn send(&self, requests: Vec<Outgoing>) {
        // If the connection is over, this drops the requests, and their callers get an error.
        let _ = self.queue.send(requests);
        self.driver.drive_here();
    }

    fn prepare<T>(
        &self,
        op: &Op<'_>,
        decode: fn(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> (Outgoing, Pending<T>) {
        let mut body = Encoder::default();
        op.encode(&mut body);
        let (answer, reply) = oneshot::channel();
        let sent = self.clock.now();
        let outgoing = Outgoing {
            code: op.code(),
            body: body.into_bytes(),
            reach: op.reach(),
            sent,
            answer: Some(answer),
        };
        let server = self.server.clone();
        let reply = Some(reply);
        (
            outgoing,
            Pending {
                reply,
                sent,
                decode,
                server,
            },
        )
    }

    /// Collects requests that are sent together.
    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch {
            connection: self,
            requests: Vec::new(),
        }
    }

    /// Waits for the answer to one request.
    pub(crate) async fn ask<T>(
        &self,
        op: &Op<'_>,
        decode: fn(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> Result<Answered<T>, Error> {
        let mut batch = self.batch();
        let pending = batch.add(op, decode);
        batch.send();
        pending.answer().await
    }

    /// Deletes a node in any version.
    pub(crate) async fn delete(&self, path: &str) -> Result<Answered<()>, Error> {
        self.ask(&Op::Delete(path, message::ANY), message::nothing)
            .await
    }

    /// Runs a transaction. An error names the part that failed.
    pub(crate) async fn transact(
        &self,
        parts: Vec<Op<'_>>,
    ) -> Result<Result<Answer<Effects>, (usize, Code)>, Error> {
        let answer = self.ask(&Op::Multi(parts), message::transaction).await?;
        Ok(committed(answer))
    }

    /// Returns what resolves at the next change of `path`. Asked for before the request that sets the watch.
    pub(crate) fn next_change(&self, path: &str) -> Change {
        let (notify, notified) = oneshot::channel();
        if let Some(watches) = locked(&self.shared.watches).as_mut() {
            watches.entry(path.to_owned()).or_default().push(notify);
        }
        Change {
            path: path.to_owned(),
            notified,
            shared: Arc::clone(&self.shared),
        }
    }

    #[cfg(test)]
    pub(crate) fn watching(&self) -> usize {
        let watches = locked(&self.shared.watches);
        watches.as_ref().map_or(0, HashMap::len)
    }

    /// Returns about what the wall clock of the leader shows, in milliseconds; `None` if it has not shown yet.
    pub(crate) fn about_leader_time(&self) -> Option<i64> {
        locked(&self.shared.leader_clock).about(self.clock.now())
    }

    /// The same, if a recent answer says that `end` has not come. Otherwise only a fresh answer can tell.
    pub(crate) fn leader_time_before(&self, end: i64) -> Option<i64> {
        locked(&self.shared.leader_clock).before(end, self.clock.now())
    }

    /// Learns the wall clock of the leader from a node that was changed just now.
    pub(crate) fn learn_leader_clock(&self, changed: Stat) {
        locked(&self.shared.leader_clock).learn(changed.changed_ms, self.clock.now());
    }

    /// How long a lease is counted as, at most.
    pub(crate) fn usable(&self) -> Duration {
        SessionTerm::usable(self.timeout)
    }

    /// Whether a task still drives the connection.
    pub(crate) fn is_open(&self) -> bool {
        !self.queue.is_closed()
    }
}

/// Requests that are sent in one go.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    connection: &'a Connection,
    requests: Vec<Outgoing>,
}

impl Batch<'_> {
    pub(crate) fn add<T>(
        &mut self,
        op: &Op<'_>,
        decode: fn(&mut Decoder<'_>) -> Result<T, Malformed>,
    ) -> Pending<T> {
        let (outgoing, pending) = self.connection.prepare(op, decode);
        self.requests.push(outgoing);
        pending
    }

    /// Adds the question for the names of the children of `path`, perhaps with a watch.
    pub(crate) fn children(&mut self, path: &str, watch: bool) -> Pending<Vec<String>> {
        self.add(&Op::GetChildren(path, watch), message::children)
    }

    /// Adds the question for the data of `path`, perhaps with a watch.
    pub(crate) fn data(&mut self, path: &str, watch: bool) -> Pending<(Vec<u8>, Stat)> {
        self.add(&Op::GetData(path, watch), message::data)
    }

    /// Adds a request to bring the server up to date.
    pub(crate) fn sync(&mut self) {
        drop(self.add(&Op::Sync("/"), message::nothing));
    }

    pub(crate) fn send(self) {
        self.connection.send(self.requests);
    }
}

impl<T> Pending<T> {
    /// Waits for the answer: the value, or why the server refuses.
    ///
    /// # Errors
    ///
    /// Any failure to get an answer that is understood. The effect of the request is then unknown.
    pub(crate) async fn answer(mut self) -> Result<Answered<T>, Error> {
        let lost = || lost(&self.server);
        let reply = self.reply.take().ok_or_else(lost)?;
        let reply = reply.await.map_err(|_| lost())?;
        match Code(reply.code) {
            Code(0) => {}
            // What follows on this connection fails, too.
            code if code.meaning() == Meaning::Lost => return Err(lost()),
            code => return Ok(Err(code)),
        }
        let value = (self.decode)(&mut Decoder::new(&reply.body)).map_err(|error| {
            let text = format!("{}: {error}", self.server);
            Error::new(ErrorKind::InvalidResponse, text).with_unknown_effect()
        })?;
        Ok(Ok(Answer {
            value,
            sent: self.sent,
            lives_until: reply.lives_until,
        }))
    }
}

fn lost(server: &str) -> Error {
    let text = format!("the connection to {server} is lost");
    Error::new(ErrorKind::Unreachable, text).with_unknown_effect()
}

/// Returns both sides of a connection on which a session was opened.
pub(super) fn connection(
    opened: Opened,
    socket: Socket,
    clock: Arc<dyn Clock>,
) -> (Connection, Arc<Driver>) {
    let (sender, queue) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        watches: Mutex::new(Some(HashMap::new())),
        leader_clock: Mutex::default(),
    });
    let line = Line::new(&opened, socket, &clock, (queue, Arc::clone(&shared)));
    let driver = Arc::new(Driver::new(line, Arc::clone(&clock)));
    let connection = Connection {
        session: opened.session,
        timeout: opened.timeout,
        server: opened.server,
        queue: sender,
        shared,
        driver: Arc::clone(&driver),
        clock,
    };
    (connection, driver)
}
