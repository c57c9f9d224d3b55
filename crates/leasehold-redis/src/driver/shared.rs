use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use leasehold::MemberId;
use leasehold::background::{self, Process};
use leasehold::clock::Clock;
use leasehold_quorum::{MemberEvent, Now};
use tokio::sync::{Notify, watch};

use super::link::Batch;
use super::news;
use super::state::State;

/// What the I/O thread and the futures of callers share.
#[derive(Debug)]
pub(super) struct Shared {
    clock: Arc<dyn Clock>,
    /// The members, in the order of their numbers.
    pub(super) members: Vec<MemberId>,
    process: Process,
    state: Mutex<State>,
    /// Wakes the I/O thread: to write, to set its timer, or to end.
    thread: Notify,
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

/// The part of a program that changed the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A future of a caller, which may take over the duty to write.
    Caller,
    /// The I/O thread, or a future that is dropped.
    Thread,
}

/// The writer of requests that a caller appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Another thread, or there is nothing to write.
    None,
    /// The caller, at once.
    Now,
    /// The caller, after the other tasks that are ready now: they append, and one write sends all.
    AfterYield,
}

/// The longest time that a caller with the duty to write keeps others waiting.
const DUTY_MAX: Duration = Duration::from_millis(5);

/// How many batches a caller writes to a member before the thread goes on.
const CALLER_ROUNDS: usize = 2;

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, members: Vec<MemberId>, state: State) -> Self {
        let tasks = state.links.iter().map(|_| TaskSignal::default()).collect();
        Self {
            clock,
            members,
            process: Process::current(),
            state: Mutex::new(state),
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

    /// Changes the state, and wakes the futures that wait for the change. Returns whether the caller has
    /// to write what came of it. Otherwise another thread does.
    pub(super) fn update<T>(
        &self,
        side: Side,
        change: impl FnOnce(&mut State, Now) -> T,
    ) -> (T, Duty) {
        let now = self.now();
        let mut state = self.lock();
        let was_busy = state.is_busy();
        let result = change(&mut state, now);
        let (duty, is_thread_due) = assign_duty(&mut state, now, side, was_busy);
        let wakes_thread = is_thread_due | advance_timer(&mut state) | state.is_done();
        let (wakers, news) = (state.take_wakers(), state.take_news());
        for event in &news {
            if let MemberEvent::Suspended { span, .. } = event {
                // Before the engine takes in anything else.
                self.clock.stood_still(*span);
            }
        }
        drop(state);
        for event in news {
            news::log(&self.members, now.instant, event);
        }
        wakers.into_iter().for_each(Waker::wake);
        if wakes_thread {
            self.thread.notify_one();
        }
        (result, duty)
    }

    /// Writes all batches that this thread may write. The thread goes on with what a caller leaves.
    pub(super) fn write(&self, side: Side) {
        let mut batches: Vec<Batch> = Vec::new();
        let mut rounds = 0;
        loop {
            let mut state = self.lock();
            for batch in batches.drain(..) {
                let member = batch.member;
                state.links[member].finish(batch);
                if !state.links[member].is_open() {
                    // Its task waits for the end of this write before it connects again.
                    self.tasks[member].wake();
                }
            }
            let is_over = side == Side::Caller && rounds == CALLER_ROUNDS;
            if !is_over {
                state.take_batches(&mut batches);
            }
            for (signal, link) in self.tasks.iter().zip(&state.links) {
                if link.needs_task() {
                    signal.wake();
                }
            }
            let is_left = is_over && state.has_output();
            drop(state);
            if is_left {
                self.thread.notify_one();
            }
            if batches.is_empty() {
                return;
            }
            batches.iter_mut().for_each(Batch::write);
            rounds += 1;
        }
    }

    /// Resolves when another thread or future has something for the I/O thread.
    pub(super) async fn notified(&self) {
        self.thread.notified().await;
    }

    /// Wakes the I/O thread.
    pub(super) fn notify_thread(&self) {
        self.thread.notify_one();
    }

    /// The signal of a connection's task.
    pub(super) fn task(&self, member: usize) -> &TaskSignal {
        &self.tasks[member]
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The I/O thread ended.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.end();
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        self.ended.send_replace(true);
    }

    /// Resolves when nothing is in flight at members that answer.
    pub(super) async fn idle(&self) {
        poll_fn(|context| match self.lock().poll_idle(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
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

/// Says who writes what a change of the state appended, and whether the I/O thread must be woken for it.
fn assign_duty(state: &mut State, now: Now, side: Side, was_busy: bool) -> (Duty, bool) {
    if !state.unwritten {
        return (Duty::None, false);
    }
    if let Some(since) = state.writer_since {
        return (Duty::None, now.instant.since(since) > DUTY_MAX);
    }
    state.writer_since = Some(now.instant);
    if side == Side::Thread {
        return (Duty::None, true);
    }
    match background::has_several_threads() {
        true => (Duty::AfterYield, false),
        // On a single thread each wake-up polls one task, and each batch would be one operation.
        false if was_busy => (Duty::None, true),
        false => (Duty::Now, false),
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
