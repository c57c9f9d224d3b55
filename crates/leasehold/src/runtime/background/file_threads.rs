//! The threads on which work may block on files. Those of tokio panic if the system has no room for a thread.

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use super::process::Process;
use super::thread;
use crate::env::locked;
use crate::types::Error;

/// Work for a thread.
type Work = Box<dyn FnOnce() + Send>;

static STATE: Mutex<FileThreadsState> = Mutex::new(FileThreadsState::new());
static CHANGED: Condvar = Condvar::new();

struct FileThreadsState {
    /// The process of the threads. A forked child has none of them.
    process: Option<Process>,
    waiting: VecDeque<Work>,
    threads: usize,
    /// How many of the threads wait for work.
    idle: usize,
}

/// As many as tokio starts by default. More work waits.
const THREADS_MAX: usize = 512;
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Runs `work` on a thread that is idle, or on a new one.
pub(super) fn run(work: Work) -> Result<(), Error> {
    let mut state = match STATE.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(state)) => state.into_inner(),
        // A forked child may never get it.
        Err(TryLockError::WouldBlock) => return thread(NAME, work),
    };
    if !state.process.is_some_and(|process| process.is_current()) {
        // Dropping the parent's work could wait for a mutex that a thread of the parent held.
        mem::forget(mem::replace(&mut *state, FileThreadsState::new()));
        state.process = Some(Process::current());
    }
    state.waiting.push_back(work);
    if state.idle < state.waiting.len() && state.threads < THREADS_MAX {
        if let Err(error) = thread(NAME, work_on) {
            // The threads that are there get to it.
            if state.threads > 0 {
                return Ok(());
            }
            state.waiting.pop_back();
            return Err(error);
        }
        state.threads += 1;
    }
    CHANGED.notify_one();
    Ok(())
}

fn work_on() {
    let mut state = locked(&STATE);
    loop {
        while let Some(work) = state.waiting.pop_front() {
            drop(state);
            // The caller sees that the work has no result.
            let _ = catch_unwind(AssertUnwindSafe(work));
            state = locked(&STATE);
        }
        state.idle += 1;
        let waited = CHANGED.wait_timeout(state, IDLE_MAX);
        let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state = woken;
        state.idle -= 1;
        if timeout.timed_out() && state.waiting.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

impl FileThreadsState {
    const fn new() -> Self {
        Self {
            process: None,
            waiting: VecDeque::new(),
            threads: 0,
            idle: 0,
        }
    }
}

const NAME: &str = "leasehold-file";
