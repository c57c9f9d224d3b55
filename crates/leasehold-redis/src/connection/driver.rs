use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use leasehold::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::answer::Answer;
use super::failure;
use super::listener::Listener;
use super::outbox::{Awaited, Outbox, Replies, Request};
use super::reply::{self, REPLY_MAX, Reply, Scan, Unread};
use super::socket::Stream;

/// Reads and writes for a connection, until it breaks: what many requests want sent goes out in one
/// write, and many answers come in with one read.
pub(super) struct Driver {
    stream: Box<dyn Stream>,
    outbox: Arc<Outbox>,
    listener: Arc<Listener>,
    writing: Vec<u8>,
    written: usize,
    unflushed: bool,
    awaited: VecDeque<Awaited>,
    /// Answered, but for what the server shows of itself after them.
    unshown: Vec<Request>,
    /// Bytes that were read, and room for more behind them.
    received: Vec<u8>,
    length: usize,
    /// Follows the first reply in `received` while the rest of it has not come.
    scan: Option<Scan>,
}

/// How much is read at once. More comes only where a single reply is longer.
const ROOM: usize = 64 * 1024;

impl Driver {
    pub(super) fn new(
        stream: Box<dyn Stream>,
        outbox: Arc<Outbox>,
        listener: Arc<Listener>,
    ) -> Self {
        Self {
            stream,
            outbox,
            listener,
            writing: Vec::new(),
            written: 0,
            unflushed: false,
            awaited: VecDeque::new(),
            unshown: Vec::new(),
            received: vec![0; ROOM],
            length: 0,
            scan: None,
        }
    }

    /// Reads first: what a server says before it closes the connection is why it does.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        while let Poll::Ready(read) = self.poll_read(context) {
            if let Err(error) = read {
                return Poll::Ready(error);
            }
        }
        match self.poll_write(context) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            // Whoever wants something written, and whatever can be read or written, wakes us.
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut room = ReadBuf::new(&mut self.received[self.length..]);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut room);
        ready!(read).map_err(|error| failure::broken(&error))?;
        let count = room.filled().len();
        if count == 0 {
            return Poll::Ready(Err(failure::closed()));
        }
        self.length += count;
        Poll::Ready(self.read_replies())
    }

    fn read_replies(&mut self) -> Result<(), Error> {
        let mut start = 0;
        while let Some((reply, length)) = self.next_reply(start).map_err(failure::unread)? {
            start += length;
            self.take(reply)?;
        }
        if start > 0 {
            self.received.copy_within(start..self.length, 0);
        }
        self.length -= start;
        if self.length == self.received.len() {
            self.received.resize(2 * self.length, 0);
        } else if self.length == 0 && self.received.len() > ROOM {
            self.received = vec![0; ROOM];
        }
        Ok(())
    }

    /// The reply that begins at `start`, and its length; `None` if the rest of it has not come.
    fn next_reply(&mut self, start: usize) -> Result<Option<(Reply, usize)>, Unread> {
        let bytes = &self.received[start..self.length];
        let is_whole = match &mut self.scan {
            Some(scan) => scan.is_whole(bytes)?,
            None => !bytes.is_empty(),
        };
        if is_whole {
            self.scan = None;
            match reply::read(bytes) {
                Err(Unread::Incomplete) => self.scan = Some(Scan::default()),
                read => return read.map(Some),
            }
        }
        match bytes.len() {
            0..=REPLY_MAX => Ok(None),
            more => Err(Unread::TooLong(more)),
        }
    }

    fn take(&mut self, reply: Reply) -> Result<(), Error> {
        let answer = match reply {
            Reply::Answer(answer) => answer,
            Reply::Push(parts) => {
                self.listener.pushed(&parts);
                return Ok(());
            }
        };
        self.settle();
        match self.awaited.front_mut() {
            Some(Awaited::Request(request)) => request.answers.push(answer),
            Some(Awaited::Joined(joined)) => joined.take(answer),
            Some(Awaited::Shown(shown, _)) => shown.push(answer),
            // From here on nobody could tell which answer belongs to whom.
            None => return Err(failure::garbled()),
        }
        self.settle();
        Ok(())
    }

    /// Hands over what is answered. A request may ask for nothing but what the server shows of itself.
    fn settle(&mut self) {
        while self.awaited.front().is_some_and(Awaited::is_answered) {
            match self.awaited.pop_front() {
                Some(Awaited::Request(request)) if request.is_shown => self.unshown.push(request),
                Some(Awaited::Request(request)) => self.deliver(request, Arc::default()),
                Some(Awaited::Joined(joined)) => {
                    let deliver = |request| self.deliver(request, Arc::default());
                    joined.0.into_iter().for_each(deliver);
                }
                Some(Awaited::Shown(shown, _)) => self.show(shown.into()),
                None => {}
            }
        }
    }

    fn show(&mut self, shown: Arc<[Answer]>) {
        let mut requests = std::mem::take(&mut self.unshown);
        for request in requests.drain(..) {
            self.deliver(request, Arc::clone(&shown));
        }
        self.unshown = requests;
    }

    fn deliver(&self, request: Request, shown: Arc<[Answer]>) {
        self.outbox.answered(request.expected);
        let answers = request.answers;
        // A failed one means that nobody waits any more.
        let _ = request.asker.send(Ok(Replies { answers, shown }));
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let broken = |error| failure::broken(&error);
        loop {
            if self.written == self.writing.len() {
                self.writing.clear();
                self.written = 0;
                self.outbox
                    .take(&mut self.writing, &mut self.awaited, context);
            }
            let rest = &self.writing[self.written..];
            if rest.is_empty() {
                if self.unflushed {
                    ready!(Pin::new(&mut self.stream).poll_flush(context)).map_err(broken)?;
                    self.unflushed = false;
                }
                return Poll::Ready(Ok(()));
            }
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, rest));
            match count.map_err(broken)? {
                0 => return Poll::Ready(Err(failure::closed())),
                count => self.written += count,
            }
            self.unflushed = true;
        }
    }

    fn fail(&mut self, error: &Error) {
        let unwritten = self.outbox.close(error.clone());
        let awaited = self.awaited.drain(..).chain(unwritten);
        let awaited = awaited.flat_map(|awaited| match awaited {
            Awaited::Request(request) => vec![request],
            Awaited::Joined(joined) => joined.0.into(),
            Awaited::Shown(..) => vec![],
        });
        for request in self.unshown.drain(..).chain(awaited) {
            let _ = request.asker.send(Err(error.clone()));
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        let error = ready!(driver.poll_turn(context));
        driver.fail(&error);
        Poll::Ready(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.outbox.close(failure::closed());
    }
}
