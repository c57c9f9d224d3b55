use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use leasehold::clock::Clock;
use leasehold::store::MemberId;
use leasehold::store::background::{self, Process};
use leasehold_quorum::{Event, MemberEvent, Now, Operation, OperationId};
use tokio::sync::{Notify, watch};

use super::member_events;
use super::state::State;
use super::submissions::Submissions;
use crate::connection::state::Batch;

/// What the I/O thread and the futures of callers share.
///
/// A thread that holds the mutex of `submissions` never waits for that of `state`.
#[derive(Debug)]
pub(super) struct Shared {
    clock: Arc<dyn Clock>,
    /// The members, in the order of their numbers.
    pub(super) members: Vec<MemberId>,
    process: Process,
    submissions: Mutex<Submissions>,
    state: Mutex<State>,
    /// Whether a server has yet to reply, as a hint.
    is_busy: AtomicBool,
    /// Wakes the I/O thread: to write, to set its timer, or to end.
    pub(super) thread: Notify,
    /// Wakes the task of each connection.
    tasks: Vec<TaskSignal>,
    ended: watch::Sender<bool>,
}

/// Wakes the task of a connection, which writes what other threads cannot.
#[derive(Debug, Default)]
pub(super) struct TaskSignal {
    pub(super) waker: AtomicWaker,
    is_due: AtomicBool,
}

/// A thread that advances the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A future of a caller.
    Caller,
    /// The I/O thread.
    Thread,
}

/// Whether a caller advances the driver itself, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// Another thread or caller.
    ByAnother,
    /// At once.
    Now,
    /// After the other tasks that are ready now: they submit as well, and one write sends all.
    AfterYield,
}

/// How long others wait for the caller that is to advance the driver.
const ADVANCE_MAX: Duration = Duration::from_millis(5);

/// How many batches a caller writes to a member before the thread goes on.
const CALLER_ROUNDS: usize = 2;

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, members: Vec<MemberId>, state: State) -> Self {
        let tasks = state
            .connections
            .iter()
            .map(|_| TaskSignal::default())
            .collect();
        Self {
            clock,
            members,
            process: Process::current(),
            submissions: Mutex::new(Submissions::new()),
            state: Mutex::new(state),
            is_busy: AtomicBool::new(false),
            thread: Notify::new(),
            tasks,
            ended: watch::Sender::new(false),
        }
    }

    /// Returns whether this is a copy in a forked child, where the mutex may never become free.
    pub(super) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn now(&self) -> Now {
        Now {
            instant: self.clock.now(),
            wall: self.clock.wall(),
        }
    }

    /// Takes an operation of a caller. Returns its number, and whether the caller has to carry it out. `None` if
    /// the driver is closed.
    ///
    /// | another caller carries it out | servers owe replies | the caller's runtime | this caller |
    /// |---|---|---|---|
    /// | yes, for at most 5 ms | yes | any | leaves it to that caller, or to the thread at the last reply |
    /// | no, and no other call is open | any | any | at once |
    /// | otherwise | any | several threads | after a yield |
    /// | no | no | one thread | at once |
    /// | otherwise | any | one thread | wakes the I/O thread |
    pub(super) fn start(&self, operation: Operation) -> Option<(OperationId, Advance)> {
        let now = self.clock.now();
        let mut submissions = self.submissions();
        let id = submissions.start(operation)?;
        let since = submissions.advancing_since;
        submissions.advancing_since = since.or(Some(now));
        let is_alone = submissions.is_single();
        drop(submissions);
        let is_busy = self.is_busy.load(Ordering::Relaxed);
        let advance = match since {
            // If that caller is never polled, the thread takes over with the last reply.
            Some(since) if is_busy && now.since(since) <= ADVANCE_MAX => Advance::ByAnother,
            // No other call would add a submission.
            None if is_alone => Advance::Now,
            _ if background::has_several_threads() => Advance::AfterYield,
            None if !is_busy => Advance::Now,
            // On a single thread each wake-up polls one task, and each batch would be one operation.
            _ => {
                self.thread.notify_one();
                Advance::ByAnother
            }
        };
        Some((id, advance))
    }

    /// The future of an operation is gone, before it took the outcome.
    pub(super) fn cancel(&self, id: OperationId) {
        self.submissions().cancel(id);
        self.thread.notify_one();
    }

    /// Returns the next event of an operation, or `None` if the thread ended before it.
    pub(super) fn poll_event(&self, id: OperationId, waker: &Waker) -> Poll<Option<Event>> {
        self.submissions().poll(id, waker)
    }

    /// Changes the state, and wakes the futures that wait for the change. The I/O thread writes what came of
    /// it.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut State, Now) -> T) -> T {
        let mut state = self.lock();
        let now = self.now();
        let result = change(&mut state, now);
        let has_output = state.has_output();
        self.publish(state, now);
        if has_output {
            self.thread.notify_one();
        }
        result
    }

    /// Carries out what callers asked for, and writes all batches that this thread may write. The I/O thread
    /// goes on with what a caller leaves.
    pub(super) fn advance(&self, side: Side) {
        let mut state = match side {
            Side::Thread => self.lock(),
            Side::Caller => match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // To wait for the engine would cost more.
                Err(TryLockError::WouldBlock) => return self.thread.notify_one(),
            },
        };
        let mut batches: Vec<Batch> = Vec::new();
        let mut rounds = 0;
        loop {
            for batch in batches.drain(..) {
                let member = batch.member;
                state.connections[member].finish(batch);
                if !state.connections[member].is_open() {
                    // Its task waits for the end of this write before it connects again.
                    self.tasks[member].wake();
                }
            }
            let now = self.now();
            let is_over = side == Side::Caller && rounds == CALLER_ROUNDS;
            if !is_over {
                self.submissions().take(&mut state.submissions);
                state.carry_out(now);
                state.take_batches(&mut batches);
            }
            let is_left = is_over && state.has_output();
            self.publish(state, now);
            if is_left {
                self.thread.notify_one();
            }
            if batches.is_empty() {
                return;
            }
            batches.iter_mut().for_each(Batch::write);
            rounds += 1;
            state = self.lock();
        }
    }

    /// Frees the state, and wakes the futures that wait for what changed.
    fn publish(&self, mut state: MutexGuard<'_, State>, now: Now) {
        for (signal, connection) in self.tasks.iter().zip(&mut state.connections) {
            connection.watch(now.instant);
            if connection.needs_task() || connection.is_silent().is_some() {
                signal.wake();
            }
        }
        let mut wakers = Vec::with_capacity(state.events.len());
        let is_busy = state.is_busy();
        let mut submissions = self.submissions();
        submissions.deliver(state.events.drain(..), &mut wakers);
        let is_forgotten = !is_busy && !submissions.is_empty();
        let is_end = submissions.is_closed() && state.is_idle();
        drop(submissions);
        state.take_flushing(&mut wakers);
        let wakes_thread = advance_timer(&mut state) | is_forgotten | is_end;
        let member_events = state.take_member_events();
        for event in &member_events {
            if let MemberEvent::Suspended { span, .. } = event {
                // Before the engine takes in anything else.
                self.clock.was_paused(*span);
            }
        }
        self.is_busy.store(is_busy, Ordering::Relaxed);
        drop(state);
        for event in member_events {
            member_events::log(&self.members, now.instant, event);
        }
        wakers.into_iter().for_each(Waker::wake);
        if wakes_thread {
            self.thread.notify_one();
        }
    }

    /// Lets no further operation begin.
    pub(super) fn close(&self) {
        self.submissions().close();
        self.thread.notify_one();
    }

    /// Returns whether no further operation can begin.
    pub(super) fn is_closed(&self) -> bool {
        self.submissions().is_closed()
    }

    /// Returns whether the thread can end.
    pub(super) fn is_done(&self) -> bool {
        let state = self.lock();
        let submissions = self.submissions();
        submissions.is_closed() && submissions.is_empty() && state.is_idle()
    }

    /// Resolves when another thread or future has something for the I/O thread.
    pub(super) async fn notified(&self) {
        self.thread.notified().await;
    }

    /// The signal of a connection's task.
    pub(super) fn task(&self, member: usize) -> &TaskSignal {
        &self.tasks[member]
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn submissions(&self) -> MutexGuard<'_, Submissions> {
        self.submissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The I/O thread ended.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.end();
        let mut wakers = self.submissions().end();
        state.take_flushing(&mut wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        self.ended.send_replace(true);
    }

    /// Resolves when the I/O thread has ended.
    pub(super) async fn ended(&self) {
        // It cannot fail, since the sender is alive.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

impl TaskSignal {
    /// Wakes the task to write.
    pub(super) fn wake(&self) {
        self.is_due.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns whether the task was woken to write since the last call.
    pub(super) fn take(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::AcqRel)
    }
}

/// Returns whether the I/O thread has to wake up earlier than it is about to.
fn advance_timer(state: &mut State) -> bool {
    let Some(next) = state.next_timeout() else {
        return false;
    };
    let is_earlier = state.timer.is_none_or(|timer| next < timer);
    if is_earlier {
        state.timer = Some(next);
    }
    is_earlier
}
