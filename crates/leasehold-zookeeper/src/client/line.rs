//! One connection, as its task sees it: it writes the requests of all callers and reads the answers, which come in the
//! same order.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, within};
use leasehold::store::locked;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};
use tokio::sync::mpsc::UnboundedReceiver;

use super::jute::{Decoder, Encoder, Malformed};
use super::message::{Op, Reach};
use super::session_term::SessionTerm;
use super::shared::{Opened, Outgoing, Reply, Shared};
use super::socket::Socket;

/// How long the oldest request may go without an answer before the connection counts as broken.
///
/// A guard is valid for half of the timeout, and its lease is renewed after a sixth of it. So another sixth leaves a sixth
/// for opening the session on another server. Short timeouts leave a server time for a pause of its runtime.
fn silence(timeout: Duration) -> Duration {
    (timeout / 6).max(Duration::from_millis(500).min(timeout / 3))
}

/// What the task that drives a connection works on.
pub(super) struct Line {
    socket: Socket,
    clock: Arc<dyn Clock>,
    queue: UnboundedReceiver<Vec<Outgoing>>,
    shared: Arc<Shared>,
    timeout: Duration,
    term: SessionTerm,
    sent: VecDeque<(i32, Outgoing)>,
    last_id: i32,
    /// When the last request was sent that the leader takes part in.
    kept_alive: BootInstant,
    out: Vec<u8>,
    /// Whether the stream may keep bytes that were written.
    is_unflushed: bool,
    read: Vec<u8>,
    buffer: Box<[u8]>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new(
        opened: &Opened,
        socket: Socket,
        clock: &Arc<dyn Clock>,
        (queue, shared): (UnboundedReceiver<Vec<Outgoing>>, Arc<Shared>),
    ) -> Self {
        Self {
            socket,
            clock: Arc::clone(clock),
            queue,
            shared,
            timeout: opened.timeout,
            term: SessionTerm::confirmed(opened.asked, opened.timeout),
            sent: VecDeque::new(),
            last_id: 0,
            kept_alive: opened.asked,
            out: Vec::new(),
            is_unflushed: false,
            read: Vec::new(),
            buffer: vec![0; BUFFER].into(),
        }
    }

    /// Registers the socket at the runtime of the caller.
    pub(super) fn move_here(&mut self) -> io::Result<()> {
        self.socket.move_here()
    }

    /// Closes the connection, and ends the waits of all callers.
    pub(super) fn end(mut self) {
        self.queue.close();
        // Ends the waits for changes.
        *locked(&self.shared.watches) = None;
    }

    /// Keeps the session alive. Returns the next timeout, and whether there is something to send.
    ///
    /// # Errors
    ///
    /// The server was silent for too long.
    pub(super) fn handle_timeouts(&mut self) -> io::Result<(BootInstant, bool)> {
        let now = self.clock.now();
        if self.keeps_alive_at() <= now {
            self.keep_alive(now);
        }
        match self.is_broken_at() {
            Some(end) if end <= now => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok((self.next_timeout(), !self.out.is_empty())),
        }
    }

    /// Returns when the session has to be kept alive, or the connection is broken without an answer.
    pub(super) fn next_timeout(&self) -> BootInstant {
        let due = self.keeps_alive_at();
        self.is_broken_at().map_or(due, |end| end.min(due))
    }

    fn keeps_alive_at(&self) -> BootInstant {
        self.kept_alive + SessionTerm::keep_alive(self.timeout)
    }

    fn is_broken_at(&self) -> Option<BootInstant> {
        let (_, oldest) = self.sent.front()?;
        Some(oldest.sent + silence(self.timeout))
    }

    /// Sends the requests of all callers, and takes in what has arrived. Resolves once no caller has the connection.
    ///
    /// # Errors
    ///
    /// The connection broke.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Poll::Ready(requests) = self.queue.poll_recv(context) {
            match requests {
                Some(requests) => requests
                    .into_iter()
                    .for_each(|request| self.enqueue(request)),
                None => return Poll::Ready(Ok(())),
            }
        }
        if let Poll::Ready(Err(error)) = self.poll_write(context) {
            return Poll::Ready(Err(error));
        }
        loop {
            let mut buffer = ReadBuf::new(&mut self.buffer);
            ready!(Pin::new(&mut self.socket.stream).poll_read(context, &mut buffer))?;
            let filled = buffer.filled();
            if filled.is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.read.extend(filled);
            self.take_frames()?;
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.socket.stream).poll_write(context, &self.out))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.drain(..written);
            self.is_unflushed = true;
        }
        self.out.shrink_to(BUFFER);
        if self.is_unflushed {
            ready!(Pin::new(&mut self.socket.stream).poll_flush(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn enqueue(&mut self, request: Outgoing) {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        let mut message = Encoder::default();
        message
            .int(self.last_id)
            .int(request.code)
            .raw(&request.body);
        self.out.extend(message.framed());
        if request.reach != Reach::Server {
            self.kept_alive = self.kept_alive.max(request.sent);
        }
        self.sent.push_back((self.last_id, request));
    }

    fn keep_alive(&mut self, now: BootInstant) {
        let op = Op::Sync("/");
        let mut body = Encoder::default();
        op.encode(&mut body);
        self.enqueue(Outgoing {
            code: op.code(),
            body: body.into_bytes(),
            reach: op.reach(),
            sent: now,
            answer: None,
        });
    }

    /// Takes in all messages that are complete.
    fn take_frames(&mut self) -> io::Result<()> {
        let mut read = std::mem::take(&mut self.read);
        let mut taken = 0;
        while let Some((length, behind)) = read[taken..].split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length));
            let length = length.ok().filter(|length| *length <= FRAME_MAX);
            let length = length.ok_or(io::ErrorKind::InvalidData)?;
            let Some(message) = behind.get(..length) else {
                break;
            };
            self.take_in(message)
                .map_err(|_| io::ErrorKind::InvalidData)?;
            taken += 4 + length;
        }
        read.drain(..taken);
        // Keeps no room for the longest message ever.
        read.shrink_to(BUFFER);
        self.read = read;
        Ok(())
    }

    fn take_in(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let mut message = Decoder::new(message);
        let (id, _transaction, code) = (message.int()?, message.long()?, message.int()?);
        if id == NOTIFICATION {
            let (_kind, _state) = (message.int()?, message.int()?);
            self.notify(message.text()?);
            return Ok(());
        }
        let (expected, request) = self.sent.pop_front().ok_or(Malformed)?;
        if expected != id {
            return Err(Malformed);
        }
        // A refusal may be that of one server.
        let reach = if code == 0 {
            request.reach
        } else {
            Reach::Server
        };
        let now = self.clock.now();
        let lives_until = self.term.answered(reach, request.sent, now);
        if let Some(answer) = request.answer {
            // The caller may be gone.
            let _ = answer.send(Reply {
                code,
                body: message.rest().to_vec(),
                lives_until,
            });
        }
        Ok(())
    }

    fn notify(&self, path: &str) {
        let mut watches = locked(&self.shared.watches);
        let waiting = watches.as_mut().and_then(|watches| watches.remove(path));
        for change in waiting.into_iter().flatten() {
            let _ = change.send(());
        }
    }

    /// Says goodbye, so that the server ends the session at once, with all that belongs to it.
    pub(super) async fn close_session(&mut self) -> io::Result<()> {
        let op = Op::CloseSession;
        self.enqueue(Outgoing {
            code: op.code(),
            body: Vec::new(),
            reach: op.reach(),
            sent: self.clock.now(),
            answer: None,
        });
        let out = std::mem::take(&mut self.out);
        let end = self.clock.now() + silence(self.timeout);
        let stream = &mut self.socket.stream;
        let goodbye = async move {
            stream.write_all(&out).await?;
            stream.flush().await?;
            // The server closes the connection once the session is over.
            let mut rest = [0; 1024];
            while stream.read(&mut rest).await? > 0 {}
            Ok(())
        };
        let clock = Arc::clone(&self.clock);
        let said = within(&*clock, end, goodbye).await;
        said.unwrap_or(Ok(()))
    }
}

/// How many bytes are read at once.
const BUFFER: usize = 64 * 1024;

/// The id of messages that answer no request.
const NOTIFICATION: i32 = -1;

/// The longest message: the names of some 40,000 waiters of one lock, or of as many locks.
const FRAME_MAX: usize = 4 * 1024 * 1024;
