//! Which task drives a connection.
//!
//! [`SocketReader`] decides it: one on the runtime of the callers, or that of the client's thread. The latter alone looks at the clock.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use leasehold::clock::{BootInstant, Clock};
use leasehold::store::{CallerRuntimes, SocketReader, Sockets, locked};
use tokio::sync::Notify;

use super::line::Line;

/// A connection, as the tasks share it that drive it.
pub(crate) struct Driver {
    /// Locked before the mutex of the reader.
    driven: Mutex<Driven>,
    reader: SocketReader,
    /// The runtimes of the callers, which may drive it, too.
    callers: OnceLock<Arc<CallerRuntimes>>,
    /// Wakes the task of the client's thread.
    thread: Notify,
    clock: Arc<dyn Clock>,
}

struct Driven {
    /// `None` once the connection is closed.
    line: Option<Line>,
    /// Why it is over.
    end: Option<io::Result<()>>,
    /// The reader at whose runtime the socket is registered.
    registered: u64,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    pub(super) fn new(line: Line, clock: Arc<dyn Clock>) -> Self {
        Self {
            driven: Mutex::new(Driven {
                line: Some(line),
                end: None,
                registered: 0,
            }),
            reader: SocketReader::default(),
            callers: OnceLock::new(),
            thread: Notify::new(),
            clock,
        }
    }

    /// Lets a task of the caller's runtime drive the connection, unless one does already.
    pub(super) fn drive_here(self: &Arc<Self>) {
        if let Some(callers) = self.callers.get() {
            callers.read(self);
        }
    }

    /// Drives the connection until it breaks, or until no caller has it, together with the runtimes of `callers`.
    pub(crate) async fn run(self: Arc<Self>, callers: Option<Arc<CallerRuntimes>>) {
        if let Some(callers) = callers {
            let _ = self.callers.set(callers);
        }
        self.drive().await;
        let (line, end) = {
            let mut driven = locked(&self.driven);
            (driven.line.take(), driven.end.take())
        };
        self.reader.wake();
        let Some(mut line) = line else {
            return;
        };
        if let Some(Ok(())) = end
            && line.move_here().is_ok()
        {
            let _ = line.close_session().await;
        }
        line.end();
    }

    async fn drive(&self) {
        while let Some(timeout) = self.handle_timeouts() {
            match self.reader.on_thread() {
                Some(reader) => tokio::select! {
                    () = poll_fn(|context| self.poll_until(timeout, reader, context)) => {}
                    () = self.clock.sleep_until(timeout) => {}
                    () = self.thread.notified() => {}
                },
                None => tokio::select! {
                    () = self.clock.sleep_until(self.clock.now() + SocketReader::TICK) => self.reader.tick(),
                    () = self.thread.notified() => {}
                },
            }
        }
    }

    /// Keeps the session alive, and returns the next timeout; `None` if the connection is over.
    fn handle_timeouts(&self) -> Option<BootInstant> {
        let mut driven = locked(&self.driven);
        if driven.end.is_some() {
            return None;
        }
        let handled = driven.line.as_mut()?.handle_timeouts();
        let (timeout, has_output) = handled
            .map_err(|error| driven.end = Some(Err(error)))
            .ok()?;
        drop(driven);
        if has_output {
            self.reader.wake();
        }
        Some(timeout)
    }

    /// Drives the connection on the client's thread. Resolves as [`poll_reading`](Self::poll_reading), and if there is a timeout before
    /// this one.
    fn poll_until(&self, timeout: BootInstant, reader: u64, context: &mut Context<'_>) -> Poll<()> {
        if self.poll_reading(reader, context).is_ready() {
            return Poll::Ready(());
        }
        let driven = locked(&self.driven);
        match driven.line.as_ref().map(Line::next_timeout) {
            Some(next) if next >= timeout => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

impl Sockets for Driver {
    fn reader(&self) -> &SocketReader {
        &self.reader
    }

    fn poll_reading(&self, reader: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut driven = locked(&self.driven);
        if driven.end.is_some() || !self.reader.register(reader, context.waker()) {
            return Poll::Ready(());
        }
        let is_new = std::mem::replace(&mut driven.registered, reader) != reader;
        let Some(line) = &mut driven.line else {
            return Poll::Ready(());
        };
        let moved = if is_new { line.move_here() } else { Ok(()) };
        let end = match moved.map(|()| line.poll(context)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(end)) => end,
            Err(error) => Err(error),
        };
        driven.end = Some(end);
        Poll::Ready(())
    }

    fn wake_thread(&self) {
        self.thread.notify_one();
    }
}
