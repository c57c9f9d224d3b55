//! The only file that starts threads and tasks.

mod call;
mod callers;
mod file_threads;
mod process;
mod running;
mod thread_runtime;

pub(crate) use call::{Call, in_runtime};
pub(crate) use callers::block_on;
pub use callers::callers_runtime;
pub use process::Process;
pub(crate) use running::Running;
pub use running::has_several_threads;
use running::{Spawner, Task};
pub use thread_runtime::ThreadRuntime;

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::types::{Error, ErrorKind};

/// Starts `task` on the runtime that polls the caller: for stores, the client's background thread.
///
/// # Panics
///
/// Outside a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "the one place that spawns tasks")]
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// Starts `task` on `runtime`.
pub(crate) fn spawn_on(runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    drop(runtime.spawn(task));
}

/// Runs `work`, which may block on files, on a thread where that harms nobody.
///
/// # Errors
///
/// [`ErrorKind::Closed`] if the work panicked, or if the system has no room for a thread.
///
/// # Cancel safety
///
/// Dropping the future does not stop the work; its result is dropped when it is there.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let (done, outcome) = oneshot::channel();
    file_threads::run(Box::new(move || drop(done.send(work()))))?;
    outcome.await.map_err(|error| {
        Error::new(ErrorKind::Closed, "the work on a file was broken off").with_source(error)
    })
}

/// Starts a thread called `name`, which runs `work` to its end.
///
/// # Errors
///
/// [`ErrorKind::Closed`] if the system has no room for it.
pub fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| {
        let text = format!("the thread {name:?} could not be started");
        Error::new(ErrorKind::Closed, text).with_source(error)
    })
}

/// Where a client's tasks run.
#[derive(Debug)]
pub(crate) struct Background {
    spawner: Arc<Spawner>,
    owner: RuntimeOwner,
}

#[derive(Debug)]
enum RuntimeOwner {
    /// A thread of the client's own, so that a busy runtime of the caller cannot starve it.
    Own {
        handle: Handle,
        stop: Option<oneshot::Sender<()>>,
    },
    /// The runtime of a test, which moves time by hand.
    Borrowed(Handle),
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start() -> Result<Self, Error> {
        let runtime = ThreadRuntime::new()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread("leasehold", move || {
            // An error means that the client is gone, which is the signal too.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self::at(RuntimeOwner::Own {
            handle,
            stop: Some(stop),
        }))
    }

    /// The runtime of the caller.
    pub(crate) fn borrow(handle: Handle) -> Self {
        Self::at(RuntimeOwner::Borrowed(handle))
    }

    fn at(owner: RuntimeOwner) -> Self {
        let (tasks, inbox) = unbounded_channel();
        drop(owner.handle().spawn(start_all(inbox)));
        let spawner = Spawner {
            tasks,
            runtime: owner.handle().clone(),
            process: Process::current(),
        };
        Self {
            spawner: Arc::new(spawner),
            owner,
        }
    }

    /// Returns where its tasks run.
    pub(crate) fn handle(&self) -> &Handle {
        self.owner.handle()
    }

    /// Starts `task`; once the thread has ended it is dropped instead, with all it holds.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawner.spawn(Box::pin(task));
    }

    /// Returns `task` as a future that runs it where it is polled, on any executor. If that future is
    /// dropped before, the background thread runs the task to its end.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Running<T> {
        Running {
            task: Some(Box::pin(task)),
            spawner: Arc::clone(&self.spawner),
        }
    }

    /// Ends the thread once `shutdown_tracker` is over. Never waits for it.
    pub(crate) fn stop(&mut self, shutdown_tracker: impl Future<Output = ()> + Send + 'static) {
        let RuntimeOwner::Own { handle, stop } = &mut self.owner else {
            return self.spawn(shutdown_tracker);
        };
        let Some(stop) = stop.take() else { return };
        drop(handle.spawn(async move {
            shutdown_tracker.await;
            drop(stop);
        }));
    }
}

impl RuntimeOwner {
    fn handle(&self) -> &Handle {
        match self {
            Self::Own { handle, .. } | Self::Borrowed(handle) => handle,
        }
    }
}

/// Starts each task that comes in, until nobody can send one any more.
async fn start_all(mut inbox: UnboundedReceiver<Task>) {
    while let Some(task) = inbox.recv().await {
        spawn(task);
    }
}
