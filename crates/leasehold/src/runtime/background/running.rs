//! Runs tasks where their callers poll.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::thread::LocalKey;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::coop;

use super::process::Process;
use crate::env::BoxFuture;

/// A task of the background thread.
pub(super) type Task = BoxFuture<'static, ()>;

/// Starts tasks on the thread. One reference to it costs less than one to each of its parts.
#[derive(Debug)]
pub(super) struct Spawner {
    /// The tasks to start. A task that comes while others are waiting costs no wake-up of the thread.
    pub(super) tasks: UnboundedSender<Task>,
    pub(super) runtime: Handle,
    pub(super) process: Process,
}

impl Spawner {
    pub(super) fn spawn(&self, task: Task) {
        // A failed send means that the thread has ended.
        let _ = self.tasks.send(task);
    }
}

/// A task that its caller polls, and that the background thread goes on with if the caller drops it.
///
/// The caller's own thread thus starts and ends the task, and no other has to be woken for it.
pub(crate) struct Running<T: Send + 'static> {
    /// `None` once it has ended.
    pub(super) task: Option<BoxFuture<'static, T>>,
    pub(super) spawner: Arc<Spawner>,
}

impl<T: Send + 'static> Running<T> {
    /// Begins the task at once, and leaves the rest to the background thread.
    pub(crate) fn begin(mut self) {
        let mut context = Context::from_waker(Waker::noop());
        // The thread polls it again. A panic of the store ends the task, as it would there: a guard is
        // dropped here, perhaps because its thread panics.
        let poll = AssertUnwindSafe(|| Pin::new(&mut self).poll(&mut context));
        if catch_unwind(poll).is_err() {
            self.task = None;
        }
    }
}

impl<T: Send + 'static> Future for Running<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Self { task, spawner } = &mut *self;
        let Some(running) = task else {
            return Poll::Pending;
        };
        // A store may always answer at once. A caller that asks in a loop must not keep other tasks from
        // running.
        let budget = ready!(coop::poll_proceed(context));
        // The task that polls this may be detached itself.
        let _reset = Reset(&IS_DETACHED, IS_DETACHED.replace(false));
        let polled = poll_within(&spawner.runtime, running.as_mut(), context);
        if polled.is_ready() {
            budget.made_progress();
            *task = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Running<T> {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else {
            return;
        };
        if !self.spawner.process.is_current() {
            // A forked child has no thread, and may never get a mutex of its copy.
            std::mem::forget(task);
        } else {
            let mut task = task;
            let rest = poll_fn(move |context| {
                let _reset = Reset(&IS_DETACHED, IS_DETACHED.replace(true));
                task.as_mut().poll(context).map(drop)
            });
            self.spawner.spawn(Box::pin(rest));
        }
    }
}

thread_local! {
    /// Whether the caller that polls a task within another runtime has several threads.
    static CALLER_HAS_THREADS: Cell<Option<bool>> = const { Cell::new(None) };

    /// Whether the caller dropped the task that is being polled.
    static IS_DETACHED: Cell<bool> = const { Cell::new(false) };
}

/// Sets a value of the thread back when it is dropped.
struct Reset<T: Copy + 'static>(&'static LocalKey<Cell<T>>, T);

impl<T: Copy> Drop for Reset<T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Returns whether the caller of the task that is being polled dropped it, so that the background thread
/// finishes it.
pub(crate) fn is_detached() -> bool {
    IS_DETACHED.get()
}

/// Resolves when the caller of the task dropped it.
pub(crate) async fn detached() {
    // The background thread polls a task that it takes over.
    poll_fn(|_| match is_detached() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Returns whether the tasks of the runtime that polls the caller run on several threads.
pub fn has_several_threads() -> bool {
    CALLER_HAS_THREADS.get().unwrap_or_else(|| {
        let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        matches!(flavor, Ok(RuntimeFlavor::MultiThread))
    })
}

/// Polls `task` on this thread. What it spawns, and its timers, belong to `runtime`.
pub(super) fn poll_within<T>(
    runtime: &Handle,
    task: Pin<&mut (impl Future<Output = T> + ?Sized)>,
    context: &mut Context<'_>,
) -> Poll<T> {
    let several = has_several_threads();
    let before = CALLER_HAS_THREADS.replace(Some(several));
    let _reset = Reset(&CALLER_HAS_THREADS, before);
    let _entered = runtime.enter();
    task.poll(context)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::super::Background;
    use super::*;
    use crate::env::clock::{Clock as _, SystemClock};

    async fn thread_name() -> Option<String> {
        SystemClock.sleep_until(SystemClock.now()).await;
        std::thread::current().name().map(str::to_owned)
    }

    #[test]
    fn task_runs_where_it_is_polled() {
        let background = Background::start().unwrap();
        let here = std::thread::current().name().map(str::to_owned);
        assert_eq!(pollster::block_on(background.run(thread_name())), here);
        assert_eq!(pollster::block_on(background.with(thread_name())), here);
        let several = background.run(async { has_several_threads() });
        assert!(!pollster::block_on(several));
    }

    #[tokio::test]
    async fn dropped_task_goes_on_in_the_background() {
        let background = Background::start().unwrap();
        let (done, outcome) = oneshot::channel();
        let (begin, begun) = oneshot::channel::<()>();
        let mut running = Box::pin(background.run(async {
            let _ = begun.await;
            let _ = done.send(thread_name().await);
        }));
        assert!(futures_util::poll!(&mut running).is_pending());
        drop(running);
        begin.send(()).unwrap();
        assert_eq!(outcome.await.unwrap().as_deref(), Some("leasehold"));
    }

    #[tokio::test]
    async fn task_learns_that_it_was_dropped() {
        let background = Background::start().unwrap();
        let (done, outcome) = oneshot::channel();
        let mut running = Box::pin(background.run(async {
            detached().await;
            let _ = done.send(is_detached());
        }));
        assert!(futures_util::poll!(&mut running).is_pending());
        drop(running);
        assert!(outcome.await.unwrap());
        assert!(!is_detached());
    }

    #[tokio::test]
    async fn detached_task_is_the_caller_of_its_own_tasks() {
        let background = Arc::new(Background::start().unwrap());
        let (done, outcome) = oneshot::channel();
        let inner = background.run(async { is_detached() });
        let mut outer = Box::pin(background.run(async {
            detached().await;
            let _ = done.send(inner.await);
        }));
        assert!(futures_util::poll!(&mut outer).is_pending());
        drop(outer);
        assert!(!outcome.await.unwrap());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn task_knows_the_runtime_of_its_caller() {
        let background = Background::start().unwrap();
        assert!(background.run(async { has_several_threads() }).await);
    }
}
