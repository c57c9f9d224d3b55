use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use leasehold::clock::Clock;
use leasehold::store::background::Process;
use leasehold::member::MemberId;
use leasehold::store::{CallerRuntimes, SocketReader, Sockets};
use leasehold_quorum::{MemberEvent, Now, OperationId, PerMember};
use tokio::sync::{Notify, watch};

use super::combining::Combining;
use super::member_events;
use super::reading::Reading;
use super::state::DriverState;
use super::submissions::Submissions;

/// What the task of the client's thread and the futures of callers share.
///
/// A thread takes these mutexes in the order `state`, `submissions`, and `state`, [`Reading::member`].
#[derive(Debug)]
pub(super) struct Shared {
    clock: Arc<dyn Clock>,
    /// The members, in the order of their numbers.
    pub(super) members: PerMember<MemberId>,
    process: Process,
    submissions: Mutex<Submissions>,
    state: Combining<DriverState>,
    pub(super) reading: Reading,
    /// Whether the task of the client's thread looks at everything soon.
    ///
    /// The mutex of the submissions orders it: a caller adds one, and then looks here; the thread clears the mark, and then looks for
    /// a submission. So one of both sees what the other did.
    pub(super) is_watched: AtomicBool,
    pub(super) runtimes: CallerRuntimes,
    /// Wakes the task of the client's thread: to set its timer, to watch, or to end.
    pub(super) thread: Notify,
    ended: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, members: PerMember<MemberId>, state: DriverState) -> Self {
        Self {
            clock,
            process: Process::current(),
            submissions: Mutex::new(Submissions::new()),
            state: Combining::new(state),
            reading: Reading::new(members.len()),
            is_watched: AtomicBool::new(false),
            runtimes: CallerRuntimes::default(),
            thread: Notify::new(),
            members,
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

    /// The future of an operation is gone, before it took the outcome.
    pub(super) fn cancel(&self, id: OperationId) {
        self.submissions().cancel(id);
        self.thread.notify_one();
    }

    /// Changes the state, and carries out what follows.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut DriverState, Now) -> T) -> T {
        self.with_state(|mut state| {
            let result = change(&mut state, self.now());
            self.advance_from(state);
            result
        })
    }

    /// Looks at the state, and frees it.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut DriverState) -> T) -> T {
        self.with_state(|mut state| look(&mut state))
    }

    fn with_state<T>(&self, with: impl FnOnce(MutexGuard<'_, DriverState>) -> T) -> T {
        self.state.with(with, |state| self.advance_from(state))
    }

    /// Takes in what arrived, carries out what callers asked for, and writes to the members. If another thread has the
    /// state, that thread does it.
    pub(super) fn advance(&self) {
        self.state.work(|state| self.advance_from(state));
    }

    /// Hands everything that has arrived to the engine, without waiting.
    pub(super) fn read_now(&self) {
        self.reading.read();
        self.advance();
    }

    /// Advances the driver. Writing within the mutex costs less than letting others in: they add operations without it,
    /// and no write blocks.
    fn advance_from(&self, mut state: MutexGuard<'_, DriverState>) {
        state.receive(&self.reading, || self.now());
        let now = self.now();
        self.submissions().take(&mut state.submissions);
        state.carry_out(now);
        state.pump(now);
        state.write(&self.reading, now);
        self.publish(state, now);
    }

    /// Frees the state, and wakes the futures that wait for what changed.
    fn publish(&self, mut state: MutexGuard<'_, DriverState>, now: Now) {
        let mut wakers = Vec::with_capacity(state.events.len());
        let mut submissions = self.submissions();
        submissions.deliver(state.events.drain(..), &mut wakers);
        let is_end = submissions.is_closed() && state.is_idle();
        drop(submissions);
        state.take_flushing(&mut wakers);
        let wakes_thread = advance_timer(&mut state) | is_end;
        let member_events = state.take_member_events();
        for event in &member_events {
            if let MemberEvent::Suspended { span, .. } = event {
                // Before the engine takes in anything else.
                self.clock.was_paused(*span);
            }
        }
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
        self.look(|state| {
            let submissions = self.submissions();
            submissions.is_closed() && submissions.is_empty() && state.is_idle()
        })
    }

    /// Returns whether a member owes replies, a caller has yet to advance the driver, or a task of a caller reads, which
    /// may no longer run.
    pub(super) fn is_busy(&self) -> bool {
        let is_read_elsewhere = self.reading.reader.on_thread().is_none();
        is_read_elsewhere || self.look(|state| state.is_busy() || !self.submissions().is_empty())
    }

    pub(super) fn submissions(&self) -> MutexGuard<'_, Submissions> {
        self.submissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of the client's thread ended.
    pub(super) fn end(&self) {
        let wakers = self.look(|state| {
            state.end();
            let mut wakers = self.submissions().end();
            state.take_flushing(&mut wakers);
            wakers
        });
        wakers.into_iter().for_each(Waker::wake);
        self.members
            .keys()
            .for_each(|member| self.reading.close(member));
        self.ended.send_replace(true);
        self.reading.reader.wake();
    }

    /// Returns whether the task of the client's thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Resolves when the task of the client's thread has ended.
    pub(super) async fn ended(&self) {
        // It cannot fail, since the sender is alive.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

impl Sockets for Shared {
    fn reader(&self) -> &SocketReader {
        &self.reading.reader
    }

    /// Hands everything that arrives to the engine.
    fn poll_reading(&self, reader: u64, context: &mut Context<'_>) -> Poll<()> {
        match self.reading.poll(reader, context) {
            None => return Poll::Ready(()),
            Some(_) if self.has_ended() => return Poll::Ready(()),
            Some(true) => self.advance(),
            Some(false) => {}
        }
        Poll::Pending
    }

    fn wake_thread(&self) {
        self.thread.notify_one();
    }
}

/// Returns whether the client's thread has to wake up earlier than it is about to.
fn advance_timer(state: &mut DriverState) -> bool {
    let Some(next) = state.next_timeout() else {
        return false;
    };
    let is_earlier = state.timer.is_none_or(|timer| next < timer);
    if is_earlier {
        state.timer = Some(next);
    }
    is_earlier
}
