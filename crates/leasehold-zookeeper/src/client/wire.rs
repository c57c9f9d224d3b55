//! Which task serves a connection.
//!
//! One task at a time does. It runs on the runtime of the callers, so that no thread has to wake another one for an answer. It takes
//! its turn when that runtime polls it, so a runtime that does not run gets no socket. The task of the client's thread
//! serves callers without such a runtime, and takes over once the other task has not run for some ticks. It alone looks at the clock.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock};
use leasehold::store::background::Process;
use leasehold::store::{CallerRuntimes, locked};
use tokio::sync::Notify;

use super::line::Line;

/// A connection and the task that serves it.
pub(crate) struct Wire {
    served: Mutex<Served>,
    /// A hint: whether a task of a caller serves it.
    is_with_caller: AtomicBool,
    /// The runtimes that may serve it.
    callers: OnceLock<Arc<CallerRuntimes>>,
    /// Wakes the task of the client's thread.
    thread: Notify,
    process: Process,
    clock: Arc<dyn Clock>,
}

struct Served {
    /// `None` once the connection is closed.
    line: Option<Line>,
    /// Why it is over.
    end: Option<io::Result<()>>,
    /// Each task that serves it has a new number; odd ones are tasks of callers.
    turn: u64,
    /// At whose runtime the socket is registered.
    registered: u64,
    waker: Option<Waker>,
    /// How often the tasks of callers ran.
    polls: u64,
}

/// How often the task of the client's thread looks whether that of a caller runs.
const TICK: Duration = Duration::from_millis(10);

/// A busy machine delays a task by some ticks. Longer, and its runtime is blocked, or nothing has arrived.
const IDLE_MAX: u32 = 5;

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(line: Line, clock: Arc<dyn Clock>) -> Self {
        Self {
            served: Mutex::new(Served {
                line: Some(line),
                end: None,
                turn: 0,
                registered: 0,
                waker: None,
                polls: 0,
            }),
            is_with_caller: AtomicBool::new(false),
            callers: OnceLock::new(),
            thread: Notify::new(),
            process: Process::current(),
            clock,
        }
    }

    /// Lets a task of the caller's runtime serve the connection, unless one does already.
    pub(super) fn serve_here(self: &Arc<Self>) {
        if !self.is_with_caller.load(Ordering::Relaxed)
            && let Some(callers) = self.callers.get()
        {
            callers.start(|| serve_for_caller(Arc::downgrade(self)));
        }
    }

    /// Serves the connection until it breaks, or until no caller has it, together with the runtimes of `callers`.
    pub(crate) async fn run(self: Arc<Self>, callers: Option<Arc<CallerRuntimes>>) {
        if let Some(callers) = callers {
            let _ = self.callers.set(callers);
        }
        self.serve().await;
        let (line, end) = {
            let mut served = locked(&self.served);
            served.waker.take().into_iter().for_each(Waker::wake);
            (served.line.take(), served.end.take())
        };
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

    async fn serve(&self) {
        let (mut polls, mut idle) = (0, 0);
        while let Some(look) = self.look_at_clock() {
            if !self.is_with_caller.load(Ordering::Acquire) {
                idle = 0;
                tokio::select! {
                    () = poll_fn(|context| self.poll_on_thread(look, context)) => {}
                    () = self.clock.sleep_until(look) => {}
                    () = self.thread.notified() => {}
                }
                continue;
            }
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now() + TICK) => {}
                () = self.thread.notified() => continue,
            }
            let mut served = locked(&self.served);
            idle = match std::mem::replace(&mut polls, served.polls) == served.polls {
                true => idle + 1,
                false => 0,
            };
            if idle >= IDLE_MAX {
                let turn = served.turn;
                self.pass(&mut served, turn);
            }
        }
    }

    /// Keeps the session alive, and returns when to look again; `None` if the connection is over.
    fn look_at_clock(&self) -> Option<BootInstant> {
        let mut served = locked(&self.served);
        if served.end.is_some() {
            return None;
        }
        match served.line.as_mut()?.look_at_clock() {
            Ok((look, has_output)) => {
                if has_output {
                    served.waker.take().into_iter().for_each(Waker::wake);
                }
                Some(look)
            }
            Err(error) => {
                served.end = Some(Err(error));
                None
            }
        }
    }

    /// Serves the connection on the client's thread. Resolves if it has to look at the clock before `look`, or if it is not its turn.
    fn poll_on_thread(&self, look: BootInstant, context: &mut Context<'_>) -> Poll<()> {
        let mut served = locked(&self.served);
        let turn = served.turn;
        if !turn.is_multiple_of(2) || served.poll(turn, context).is_ready() {
            return Poll::Ready(());
        }
        match served.line.as_ref().map(Line::next_look) {
            Some(next) if next >= look => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// Gives the turn to a task of a caller, if that of the client's thread has it. Returns its number.
    fn begin(&self) -> Option<u64> {
        let mut served = locked(&self.served);
        let turn = served.turn;
        if served.end.is_some() || !turn.is_multiple_of(2) {
            return None;
        }
        self.pass(&mut served, turn);
        Some(served.turn)
    }

    /// Gives the turn to the next task, unless that has happened.
    fn pass(&self, served: &mut Served, turn: u64) {
        if served.turn != turn {
            return;
        }
        served.turn += 1;
        let is_with_caller = !served.turn.is_multiple_of(2);
        self.is_with_caller.store(is_with_caller, Ordering::Release);
        served.waker.take().into_iter().for_each(Waker::wake);
        self.thread.notify_one();
    }
}

impl Served {
    /// Serves the connection, if it is the turn of this number. Resolves when it is no longer, or at the end of the connection.
    fn poll(&mut self, turn: u64, context: &mut Context<'_>) -> Poll<()> {
        if self.turn != turn || self.end.is_some() {
            return Poll::Ready(());
        }
        let Some(line) = &mut self.line else {
            return Poll::Ready(());
        };
        self.polls += 1;
        self.waker = Some(context.waker().clone());
        let moved = match std::mem::replace(&mut self.registered, turn) == turn {
            true => Ok(()),
            false => line.move_here(),
        };
        let end = match moved.map(|()| line.poll(context)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(end)) => end,
            Err(error) => Err(error),
        };
        self.end = Some(end);
        Poll::Ready(())
    }
}

/// Takes the turn when it is polled, unless another task of a caller has it.
async fn serve_for_caller(wire: Weak<Wire>) {
    let Some(wire) = wire.upgrade().filter(|wire| wire.process.is_current()) else {
        return;
    };
    if let Some(turn) = wire.begin() {
        let serving = Serving { wire, turn };
        poll_fn(|context| serving.poll(context)).await;
    }
}

/// The turn of a task of a caller. It ends also if the runtime ends or has no I/O.
struct Serving {
    wire: Arc<Wire>,
    turn: u64,
}

impl Serving {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        // A forked child may go on with this task, and would take the answers of the parent.
        if !self.wire.process.is_current() {
            return Poll::Ready(());
        }
        locked(&self.wire.served).poll(self.turn, context)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !self.wire.process.is_current() {
            // The registration belongs to the parent as well, and the mutex may never become free.
            std::mem::forget(Arc::clone(&self.wire));
            return;
        }
        self.wire.pass(&mut locked(&self.wire.served), self.turn);
    }
}
