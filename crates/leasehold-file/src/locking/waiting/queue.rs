//! One queue of waiters that want the same. A task on the client's thread tries for the first of them, so
//! a waiter that is not polled delays no other.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock};
use leasehold::store::background::blocking;
use leasehold::store::{Busy, LockRequest};
use leasehold::{Error, Fence};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use crate::kernel::retry_timer::RetryTimer;
use crate::locking::attempt::Stage;
use crate::locking::attempts::Attempted;
use crate::locking::kept_open::KeptOpen;
use crate::locking::table::RequestId;
use crate::locking::waiting::{QueueId, WaitQueues};
use crate::locking::writer_yield::WriterYield;

/// A request in a queue.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request: Arc<LockRequest>,
    /// The file of a try that failed before.
    pub(super) open: Option<KeptOpen>,
    /// Closed once the waiter is gone.
    pub(super) answer: oneshot::Sender<Result<Fence, Error>>,
}

/// A change of the waiters.
#[derive(Debug)]
pub(super) enum QueueChange {
    Joined(Waiter),
    /// The request was released.
    Left(RequestId),
}

/// The state of a queue.
pub(super) struct WaitQueue {
    queues: Arc<WaitQueues>,
    id: QueueId,
    changed: mpsc::UnboundedReceiver<QueueChange>,
    waiters: VecDeque<(u64, Waiter)>,
    /// The number of the next waiter.
    next_number: u64,
    /// When the waiters that are gone are removed again.
    clean_at: usize,
    /// The waiters with smaller numbers were there when a writer had its turn, and yield to no other.
    met_writer_before: u64,
    /// How long the first waiter yields.
    writer_yield: WriterYield,
    busy: watch::Sender<Option<Busy>>,
    told_at: Option<BootInstant>,
    open: Option<KeptOpen>,
    room: Option<OwnedSemaphorePermit>,
    retry_timer: RetryTimer,
}

impl WaitQueue {
    pub(super) fn new(
        queues: Arc<WaitQueues>,
        id: QueueId,
        changed: mpsc::UnboundedReceiver<QueueChange>,
        busy: watch::Sender<Option<Busy>>,
    ) -> Self {
        Self {
            queues,
            id,
            changed,
            waiters: VecDeque::new(),
            next_number: 0,
            clean_at: CLEAN_AT_LEAST,
            met_writer_before: 0,
            writer_yield: WriterYield::default(),
            busy,
            told_at: None,
            open: None,
            room: None,
            retry_timer: RetryTimer::new(),
        }
    }

    /// Serves the waiters until none is left.
    pub(super) async fn run(mut self) {
        let mut watch = None;
        loop {
            self.admit();
            let Some(request) = self.first() else {
                if self.queues.close(&self.id, &self.changed) {
                    return;
                }
                continue;
            };
            match self.attempt(&request).await {
                Ok(Attempted::Busy(busy, open)) => {
                    self.refused(busy, open);
                    drop(watch.take());
                    self.pause().await;
                }
                Ok(Attempted::Granted(fence, of_lock)) => {
                    // The next try watches the same file, so the watch may as well go on.
                    watch = of_lock;
                    self.granted(&request, fence).await;
                }
                Err(error) => {
                    if let Some(waiter) = self.remove_first() {
                        // It fails if the waiter is gone.
                        let _ = waiter.answer.send(Err(error));
                    }
                }
            }
        }
    }

    /// Adds the waiters that have joined, and removes those whose request was released.
    fn admit(&mut self) {
        let mut left = HashSet::new();
        while let Ok(change) = self.changed.try_recv() {
            let mut waiter = match change {
                QueueChange::Joined(waiter) => waiter,
                QueueChange::Left(request) => {
                    left.insert(request);
                    continue;
                }
            };
            let number = self.next_number;
            self.next_number += 1;
            if let Some(open) = waiter.open.take() {
                if open.writer_yield.is_done() {
                    self.met_writer_before = self.next_number;
                }
                self.open.get_or_insert(open);
            }
            self.waiters.push_back((number, waiter));
        }
        if !left.is_empty() {
            let first = |it: &Self| it.waiters.front().map(|(number, _)| *number);
            let before = first(self);
            self.waiters
                .retain(|(_, waiter)| !left.contains(&RequestId::of(&waiter.request)));
            if first(self) != before {
                self.writer_yield = WriterYield::default();
            }
        }
        if self.waiters.len() >= self.clean_at {
            self.waiters
                .retain(|(_, waiter)| !waiter.answer.is_closed());
            self.clean_at = CLEAN_AT_LEAST.max(2 * self.waiters.len());
        }
    }

    /// Returns the request of the first waiter that is not gone.
    fn first(&mut self) -> Option<Arc<LockRequest>> {
        while let Some((_, first)) = self.waiters.front() {
            if !first.answer.is_closed() {
                return Some(Arc::clone(&first.request));
            }
            self.remove_first();
        }
        None
    }

    fn remove_first(&mut self) -> Option<Waiter> {
        self.writer_yield = WriterYield::default();
        self.waiters.pop_front().map(|(_, waiter)| waiter)
    }

    async fn attempt(&mut self, request: &LockRequest) -> Result<Attempted, Error> {
        self.room = self.room.take().or_else(|| self.queues.room(self.id.mode));
        let has_met_writer = self
            .waiters
            .front()
            .is_some_and(|(number, _)| *number < self.met_writer_before);
        let writer_yield = match has_met_writer {
            true => WriterYield::done(),
            false => self.writer_yield,
        };
        let attempts = &self.queues.attempts;
        let now = attempts.env.clock.wall();
        let request = Arc::new(request.clone().proposed_at(now));
        let begin = Stage::Try(self.open.take(), writer_yield);
        let watcher = self.queues.watcher(self.room.is_some());
        attempts.attempt(&request, begin, watcher).await
    }

    fn refused(&mut self, busy: Busy, open: KeptOpen) {
        self.writer_yield = open.writer_yield;
        if open.writer_yield.is_done() {
            self.met_writer_before = self.next_number;
        }
        self.open = self.room.is_some().then_some(open);
        let now = self.queues.attempts.env.clock.now();
        // Telling each of many waiters about each of many holders would cost the square of their number.
        if self.told_at.is_none_or(|at| now.since(at) >= TELL_AGAIN) {
            self.told_at = Some(now);
            self.busy.send_if_modified(|known| {
                let is_new = known.as_ref() != Some(&busy);
                *known = Some(busy);
                is_new
            });
        }
    }

    /// Answers the first waiter. If the waiter is gone, frees the lock, because its release may have come first.
    async fn granted(&mut self, request: &LockRequest, fence: Fence) {
        self.admit();
        let id = RequestId::of(request);
        let is_first = |(_, first): &(u64, Waiter)| RequestId::of(&first.request) == id;
        let waiter = self.waiters.front().is_some_and(is_first);
        let waiter = waiter.then(|| self.remove_first()).flatten();
        if waiter.is_none_or(|waiter| waiter.answer.send(Ok(fence)).is_err()) {
            let held = self.queues.attempts.table.remove(&id);
            // If there is no thread for it, it is freed here.
            let _ = blocking(move || drop(held)).await;
        }
    }

    /// Returns when another try is worth making, or when all known waiters are gone.
    async fn pause(&mut self) {
        let queues = Arc::clone(&self.queues);
        let env = &queues.attempts.env;
        if self.room.is_none() {
            let Ok(_turn) = queues.polling.acquire().await else {
                return;
            };
            return env.poll_pause().await;
        }
        let Some(watch) = self.open.as_ref().and_then(|open| open.watch.as_ref()) else {
            return env.poll_pause().await;
        };
        let clock: &dyn Clock = &*env.clock;
        let floor = env.random_span(POLL_FLOOR[0], POLL_FLOOR[1]);
        let until = self.retry_timer.without_notification(clock.now(), floor);
        let mut alarm = clock.sleep_until(until);
        loop {
            let Some((_, first)) = self.waiters.front_mut() else {
                return;
            };
            tokio::select! {
                biased;
                is_reported = watch.changed() => {
                    if !is_reported {
                        return env.poll_pause().await;
                    }
                    break;
                }
                () = &mut alarm => return,
                () = first.answer.closed() => {
                    self.waiters.pop_front();
                    self.writer_yield = WriterYield::default();
                }
            }
        }
        let at = self.retry_timer.notified(clock.now());
        clock.sleep_until(at).await;
    }
}

/// How often the waiters hear of another holder.
const TELL_AGAIN: Duration = Duration::from_secs(1);

/// How long a queue without notifications waits until it tries all the same.
const POLL_FLOOR: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// With fewer waiters, it does not matter that some of them may be gone.
const CLEAN_AT_LEAST: usize = 64;
