//! Waking callers on their own runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, RawWakerVTable, Wake, Waker};

use tokio::runtime::{Handle, Id};

use crate::background;

/// The ways to the runtimes that callers wait on. To wake a task of another runtime costs a write to its
/// eventfd each time; so one task there is woken for all, and wakes the others from inside.
#[derive(Debug, Default)]
pub(crate) struct Relays(Mutex<Vec<(Id, Arc<Relay>)>>);

#[derive(Debug, Default)]
struct Relay(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Whom to wake.
    ready: Vec<Waker>,
    /// Wakes the task that wakes them; `None` if it has been woken, or has yet to begin.
    task: Option<Waker>,
    /// What the wakers of the runtime's tasks are like, once one was seen.
    kind: Option<&'static RawWakerVTable>,
    /// There is no such task any more.
    is_over: bool,
}

/// Stands for a caller's own waker.
struct Caller {
    waker: Waker,
    relay: Arc<Relay>,
}

impl Relays {
    /// What is to be woken instead of `waker`, which is of the task that is being polled.
    pub(crate) fn waker(&self, waker: &Waker) -> Waker {
        let (Some(_), Ok(runtime)) = (tokio::task::try_id(), Handle::try_current()) else {
            return waker.clone();
        };
        let relay = self.to(runtime.id());
        // Whoever blocks a thread of the runtime, and our task with it, brings a waker of another kind.
        let is_task = relay.state().kind == Some(waker.vtable());
        if !is_task {
            return waker.clone();
        }
        let waker = waker.clone();
        Waker::from(Arc::new(Caller { waker, relay }))
    }

    fn to(&self, runtime: Id) -> Arc<Relay> {
        let mut relays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, relay)) = relays.iter().find(|(id, _)| *id == runtime) {
            return Arc::clone(relay);
        }
        // Of runtimes that are gone nothing is kept.
        relays.retain(|(_, relay)| !relay.state().is_over);
        let relay = Arc::<Relay>::default();
        background::spawn(Waking(Arc::clone(&relay)));
        relays.push((runtime, Arc::clone(&relay)));
        relay
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        let relays = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, relay) in relays {
            relay.end();
        }
    }
}

impl Relay {
    fn wake(&self, waker: Waker) {
        let mut state = self.state();
        if state.is_over {
            drop(state);
            return waker.wake();
        }
        state.ready.push(waker);
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }

    fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let left = std::mem::take(&mut state.ready);
        let task = state.task.take();
        drop(state);
        left.into_iter().chain(task).for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if Arc::strong_count(&self.relay) <= ALONE {
            self.waker.wake_by_ref();
        } else {
            self.relay.wake(self.waker.clone());
        }
    }
}

/// Who has a relay where one caller alone waits: the list of them, the task, and the caller.
const ALONE: usize = 3;

/// The task that wakes the others of its runtime.
struct Waking(Arc<Relay>);

impl Future for Waking {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state();
        if state.is_over {
            return Poll::Ready(());
        }
        state.task = Some(cx.waker().clone());
        state.kind = Some(cx.waker().vtable());
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        ready.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        self.0.end();
    }
}
