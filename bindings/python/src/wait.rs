//! Calls that block a thread: without the GIL, and ended by signals.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use leasehold_bridge::BoxFuture;
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::errors::OrRaise;

/// How often a waiting thread lets Python handle signals.
const SLICE: Duration = Duration::from_millis(50);

/// The thread in which the interpreter ends.
static ENDS_IN: OnceLock<ThreadId> = OnceLock::new();

/// How many threads poll a call, or are about to.
static POLLING: AtomicUsize = AtomicUsize::new(0);

/// Says that the interpreter ends in this thread. The other ones are daemons, and never return from a call: the errors of
/// the closed clients would be noise, and their Python would run while it is taken apart.
#[pyfunction]
pub(crate) fn end_in_this_thread() {
    let _ = ENDS_IN.set(thread::current().id());
}

/// Waits until no other thread polls a call, for at most `limit` seconds. A request that was on its way when its client was
/// closed is withdrawn at the next poll.
#[pyfunction]
pub(crate) fn wait_for_other_threads(py: Python<'_>, limit: f64) {
    py.detach(|| {
        let mut slices = limit / 0.001;
        while POLLING.load(Ordering::SeqCst) > 0 && slices > 0.0 {
            thread::park_timeout(Duration::from_millis(1));
            slices -= 1.0;
        }
    });
}

/// Waits for `future` without the GIL. If a signal handler raises, the future is dropped, which ends the call at the store.
pub(crate) fn wait(py: Python<'_>, mut future: BoxFuture<Answer>) -> PyResult<Answer> {
    loop {
        let polled = py.detach(move || {
            POLLING.fetch_add(1, Ordering::SeqCst);
            let answer = match ends_elsewhere() {
                false => poll_for_a_slice(future.as_mut()),
                true => None,
            };
            let is_ending = ends_elsewhere();
            // If the interpreter ends, the call goes on in the background.
            let polled = (!is_ending).then_some((answer, future));
            POLLING.fetch_sub(1, Ordering::SeqCst);
            park_if_ending();
            polled
        });
        match polled {
            Some((Some(answer), _)) => return answer.or_raise(),
            Some((None, unfinished)) => future = unfinished,
            None => unreachable!("a daemon thread stays parked"),
        }
        py.check_signals()?;
    }
}

fn ends_elsewhere() -> bool {
    ENDS_IN
        .get()
        .is_some_and(|it| *it != thread::current().id())
}

/// Parks this thread until the process is gone, if the interpreter ends in another one.
pub(crate) fn park_if_ending() {
    while ends_elsewhere() {
        thread::park();
    }
}

fn poll_for_a_slice<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let (parker, waker) = parker();
    loop {
        parker.is_woken.store(false, Ordering::Release);
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        while !parker.is_woken.load(Ordering::Acquire) {
            thread::park_timeout(SLICE);
            if !parker.is_woken.load(Ordering::Acquire) {
                return None;
            }
        }
    }
}

fn parker() -> (Arc<Parker>, Waker) {
    thread_local! {
        static PARKER: (Arc<Parker>, Waker) = {
            let thread = thread::current();
            let parker = Arc::new(Parker { thread, is_woken: AtomicBool::new(false) });
            (Arc::clone(&parker), Waker::from(parker))
        };
    }
    PARKER.with(Clone::clone)
}

struct Parker {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}
