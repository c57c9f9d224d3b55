//! One connection, as its task sees it: it writes the requests of all callers and reads the answers, which come in the
//! same order.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, within};
use leasehold::store::locked;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::UnboundedReceiver;

use super::jute::{Decoder, Encoder, Malformed};
use super::message::{Op, Reach};
use super::session_term::SessionTerm;
use super::shared::{Opened, Outgoing, Reply, Shared};

/// How long the oldest request may go without an answer before the connection counts as broken.
///
/// A guard is valid for half of the timeout, and its lease is renewed after a sixth of it. So another sixth leaves a sixth
/// for opening the session on another server. Short timeouts leave a server time for a pause of its runtime.
fn silence(timeout: Duration) -> Duration {
    (timeout / 6).max(Duration::from_millis(500).min(timeout / 3))
}

/// A socket, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The side of a connection that its task has.
pub(crate) struct Line {
    stream: Box<dyn Stream>,
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
    read: Vec<u8>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new(
        opened: &Opened,
        stream: Box<dyn Stream>,
        clock: &Arc<dyn Clock>,
        (queue, shared): (UnboundedReceiver<Vec<Outgoing>>, Arc<Shared>),
    ) -> Self {
        Self {
            stream,
            clock: Arc::clone(clock),
            queue,
            shared,
            timeout: opened.timeout,
            term: SessionTerm::confirmed(opened.asked, opened.timeout),
            sent: VecDeque::new(),
            last_id: 0,
            kept_alive: opened.asked,
            out: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Serves the connection until it breaks, or until no caller has it.
    pub(crate) async fn run(mut self) {
        let _ = self.serve().await;
        self.queue.close();
        // Ends the waits for changes.
        *locked(&self.shared.watches) = None;
    }

    async fn serve(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let now = self.clock.now();
            let due = self.kept_alive + SessionTerm::keep_alive(self.timeout);
            if due <= now {
                self.keep_alive(now);
            }
            let oldest = self.sent.front().map(|(_, request)| request.sent);
            let broken = oldest.map(|sent| sent + silence(self.timeout));
            if broken.is_some_and(|end| end <= now) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let wake = broken.map_or(due, |end| end.min(due));
            let wake = self.clock.sleep_until(wake);
            let (mut reading, mut writing) = tokio::io::split(&mut self.stream);
            let has_output = !self.out.is_empty();
            tokio::select! {
                requests = self.queue.recv() => match requests {
                    Some(requests) => {
                        requests.into_iter().for_each(|request| self.enqueue(request));
                    }
                    None => return self.close_session().await,
                },
                written = writing.write(&self.out), if has_output => {
                    let written = written?;
                    self.out.drain(..written);
                    if self.out.is_empty() {
                        self.out.shrink_to(BUFFER);
                        writing.flush().await?;
                    }
                }
                count = reading.read(&mut buffer) => {
                    let count = count?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.read.extend(&buffer[..count]);
                    self.take_frames()?;
                }
                () = wake => {}
            }
        }
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
    async fn close_session(&mut self) -> io::Result<()> {
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
        let stream = &mut self.stream;
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
