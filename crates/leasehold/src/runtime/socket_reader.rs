//! Which task waits for the sockets of a client.
//!
//! One task at a time does, the reader. It runs on the runtime of the callers, so that no thread has to wake another one
//! for an answer. It becomes the reader when that runtime polls it, so a runtime that does not run gets no sockets. The task
//! of the client's thread is the reader for callers without such a runtime, and once the other task has not run for
//! some ticks.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::background::Process;
use super::caller_runtimes::CallerRuntimes;
use crate::env::locked;

/// Which task waits for the sockets of a client: one of the client's thread, or one of its callers.
///
/// Each reader has a new number; odd numbers are tasks of callers. A reader compares its number at each poll, by
/// [`register`](Self::register), so one that was replaced ends at its next poll, and it is woken for that.
#[derive(Debug)]
pub struct SocketReader {
    current: Mutex<Current>,
    /// The number of the reader, which only a thread with the mutex above changes. Outside of it, it is a hint: who acts on
    /// it compares again behind the mutex.
    number: AtomicU64,
    process: Process,
}

#[derive(Debug, Default)]
struct Current {
    number: u64,
    waker: Option<Waker>,
    /// Whether the reader ran since the last tick.
    has_run: bool,
    /// For how many ticks in a row it has not run.
    idle: u32,
}

/// The sockets of a client, as a task of a caller sees them that reads them.
pub trait Sockets: Send + Sync + 'static {
    /// Returns which task reads them.
    fn reader(&self) -> &SocketReader;

    /// Takes in everything that has arrived. Resolves if `reader` is not the reader, or if the sockets are closed. Otherwise the task
    /// is woken when there is more.
    fn poll_reading(&self, reader: u64, context: &mut Context<'_>) -> Poll<()>;

    /// Wakes the task of the client's thread, which is the reader now.
    fn wake_thread(&self);
}

impl Default for SocketReader {
    fn default() -> Self {
        Self {
            current: Mutex::default(),
            number: AtomicU64::new(0),
            process: Process::current(),
        }
    }
}

impl SocketReader {
    /// How often the client's thread looks whether the task of a caller runs.
    pub const TICK: Duration = Duration::from_millis(10);

    /// Returns the number of the reader, if that is the client's thread.
    pub fn on_thread(&self) -> Option<u64> {
        let reader = self.number.load(Ordering::Acquire);
        reader.is_multiple_of(2).then_some(reader)
    }

    /// Notes how to wake the reader. Returns whether this is the number of the reader.
    pub fn register(&self, reader: u64, waker: &Waker) -> bool {
        let mut current = locked(&self.current);
        if current.number != reader {
            return false;
        }
        match &mut current.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        current.has_run = true;
        true
    }

    /// Makes the client's thread the reader if the task of a caller has not run for some ticks. The thread calls it after each
    /// [`TICK`](Self::TICK).
    pub fn tick(&self) {
        let mut current = locked(&self.current);
        current.idle = match std::mem::take(&mut current.has_run) {
            true => 0,
            false => current.idle.saturating_add(1),
        };
        let (number, idle) = (current.number, current.idle);
        drop(current);
        if idle >= IDLE_MAX && !number.is_multiple_of(2) {
            self.replace(number);
        }
    }

    /// Wakes the reader: a connection is new or gone, or there is something to write.
    pub fn wake(&self) {
        let waker = locked(&self.current).waker.take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Replaces a reader by the next one, unless that has happened. The former one wakes up, and ends.
    fn replace(&self, reader: u64) -> bool {
        let mut current = locked(&self.current);
        if current.number != reader {
            return false;
        }
        let next = Current {
            number: reader + 1,
            ..Current::default()
        };
        self.number.store(next.number, Ordering::Release);
        let former = std::mem::replace(&mut *current, next);
        drop(current);
        former.waker.into_iter().for_each(Waker::wake);
        true
    }
}

/// A busy machine delays a task by some ticks. Longer, and its runtime is blocked, or nothing has arrived: the client's thread
/// reads, and finds at once what arrives next.
const IDLE_MAX: u32 = 5;

impl CallerRuntimes {
    /// Lets a task of the caller's runtime read `sockets`, unless one does already, or the runtime does not run, or has no I/O.
    pub fn read<S: Sockets>(&self, sockets: &Arc<S>) {
        if sockets.reader().on_thread().is_some() {
            self.start(|| read(Arc::downgrade(sockets)));
        }
    }
}

/// Becomes the reader when it is polled, unless another task of a caller is.
async fn read<S: Sockets>(sockets: Weak<S>) {
    let Some(sockets) = sockets.upgrade() else {
        return;
    };
    let reader = sockets.reader();
    if reader.process.is_current()
        && let Some(number) = reader.on_thread()
        && reader.replace(number)
    {
        let number = number + 1;
        let reader = CallerReader { sockets, number };
        poll_fn(|context| reader.poll(context)).await;
    }
}

/// Makes the client's thread the reader at the end, also if the runtime ends or has no I/O.
struct CallerReader<S: Sockets> {
    sockets: Arc<S>,
    number: u64,
}

impl<S: Sockets> CallerReader<S> {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        // A forked child may go on with this task, and would take the answers of the parent.
        if !self.sockets.reader().process.is_current() {
            return Poll::Ready(());
        }
        self.sockets.poll_reading(self.number, context)
    }
}

impl<S: Sockets> Drop for CallerReader<S> {
    fn drop(&mut self) {
        if !self.sockets.reader().process.is_current() {
            // The registrations belong to the parent as well, and its mutexes may never become free.
            std::mem::forget(Arc::clone(&self.sockets));
            return;
        }
        self.sockets.reader().replace(self.number);
        self.sockets.wake_thread();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn reader_that_does_not_run_is_replaced() {
        let (reader, woken) = (SocketReader::default(), Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(reader.register(0, &waker) && reader.replace(0));
        assert_eq!(reader.on_thread(), None);
        for _ in 0..2 {
            assert!(reader.register(1, &waker), "it runs");
            for _ in 0..IDLE_MAX {
                reader.tick();
            }
        }
        assert_eq!(reader.on_thread(), None);
        reader.tick();
        assert_eq!(reader.on_thread(), Some(2));
        assert_eq!(woken.0.load(Ordering::Relaxed), 2, "each former reader");
        assert!(!reader.register(1, &waker) && !reader.replace(1));
    }
}
