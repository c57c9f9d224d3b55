//! Runs tasks where their callers poll.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

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
        let polled = poll_in_runtime(&spawner.runtime, running.as_mut(), context);
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
        if self.spawner.process.is_current() {
            self.spawner
                .spawn(Box::pin(async move { drop(task.await) }));
        } else {
            // A forked child has no thread, and may never get a mutex of its copy.
            std::mem::forget(task);
        }
    }
}

thread_local! {
    /// Whether the caller that polls a task within another runtime has several threads.
    static CALLER_HAS_THREADS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Sets [`CALLER_HAS_THREADS`] back when it is dropped.
struct Reset(Option<bool>);

impl Drop for Reset {
    fn drop(&mut self) {
        CALLER_HAS_THREADS.set(self.0);
    }
}

/// Returns whether the tasks of the runtime that polls the caller run on several threads.
pub fn has_several_threads() -> bool {
    CALLER_HAS_THREADS.get().unwrap_or_else(|| {
        let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        matches!(flavor, Ok(RuntimeFlavor::MultiThread))
    })
}

/// Polls `task` on this thread. What it spawns, and its timers, belong to `runtime`.
pub(super) fn poll_in_runtime<T>(
    runtime: &Handle,
    task: Pin<&mut (impl Future<Output = T> + ?Sized)>,
    context: &mut Context<'_>,
) -> Poll<T> {
    let several = has_several_threads();
    let _reset = Reset(CALLER_HAS_THREADS.replace(Some(several)));
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

    #[tokio::test(flavor = "multi_thread")]
    async fn task_knows_the_runtime_of_its_caller() {
        let background = Background::start().unwrap();
        assert!(background.run(async { has_several_threads() }).await);
    }
}
