//! Calls that block a thread: without the GIL, and ended by signals.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use leasehold_bridge::BoxFuture;
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::errors::OrRaise;

/// How often a waiting thread lets Python handle signals.
const SLICE: Duration = Duration::from_millis(50);

/// Waits for `future` without the GIL. If a signal handler raises, the future is dropped, which ends the call at the store.
pub(crate) fn wait(py: Python<'_>, mut future: BoxFuture<Answer>) -> PyResult<Answer> {
    loop {
        if let Some(answer) = py.detach(|| poll_for_a_slice(future.as_mut())) {
            return answer.or_raise();
        }
        py.check_signals()?;
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
