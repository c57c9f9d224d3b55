//! What the client's thread does for the driver. It is the only place of the driver that starts a thread or tasks.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use leasehold::Error;
use leasehold::clock::BootInstant;
use leasehold::store::background::ThreadRuntime;
use leasehold::store::{BoxFuture, SocketReader, Sockets as _, background};
use tokio::runtime::Handle;

use super::connection_task::ConnectionTask;
use super::shared::Shared;

/// Starts a thread that does the work, for callers that are no client.
pub(super) fn start(shared: Arc<Shared>, tasks: Vec<ConnectionTask>) -> Result<(), Error> {
    let runtime = ThreadRuntime::new()?;
    let work = run(shared, tasks);
    background::thread("leasehold-redis", move || runtime.block_on(work))
}

/// Keeps the connections of `tasks` open until the driver is closed and has nothing left to do. Dropping this closes
/// them.
pub(super) fn run(
    shared: Arc<Shared>,
    tasks: Vec<ConnectionTask>,
) -> impl Future<Output = ()> + Send + 'static {
    let end = End(shared);
    async move {
        let shared = &end.0;
        shared.runtimes.serve_from(Handle::current());
        let keep = |task: ConnectionTask| task.keep(Arc::clone(shared));
        let mut connections: FuturesUnordered<_> = tasks.into_iter().map(keep).collect();
        let mut timer = Timer::default();
        let mut watch = Watch::default();
        while let Some(deadline) = do_due(shared) {
            tokio::select! {
                () = shared.thread.notified() => {}
                _ = connections.next() => {}
                () = read(shared) => {}
                () = watch.run(shared) => {}
                () = timer.reach(shared, deadline) => {}
            }
        }
    }
}

/// Tells all callers that the work ended, also if it panicked.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Does what is due. Returns when to wake up again (at the end of time if only others wake the thread),
/// or `None` if the driver is closed and has nothing left to do.
fn do_due(shared: &Shared) -> Option<BootInstant> {
    let deadline = shared.update(|state, now| {
        if state.timer.is_some_and(|timer| timer <= now.instant) {
            state.timer = None;
            state.handle_timeout(now);
        }
        // It is not moved back: a reply usually comes long before its deadline.
        state.timer = state.timer.or_else(|| state.next_timeout());
        state.timer
    });
    let never = BootInstant::from_nanos(u64::MAX);
    (!shared.is_done()).then(|| deadline.unwrap_or(never))
}

/// Waits for the sockets while the client's thread is the reader. It resolves when that ends.
async fn read(shared: &Shared) {
    match shared.reading.reader.on_thread() {
        Some(reader) => poll_fn(|context| shared.poll_reading(reader, context)).await,
        None => std::future::pending().await,
    }
}

/// Looks regularly for what others should have done, until this thread is the reader and nothing is left to do.
#[derive(Default)]
struct Watch {
    tick: Option<BoxFuture<'static, ()>>,
}

impl Watch {
    async fn run(&mut self, shared: &Shared) {
        if self.tick.is_none() {
            shared.is_watched.store(true, Ordering::Relaxed);
            if !shared.is_busy() {
                shared.is_watched.store(false, Ordering::Relaxed);
                if !shared.is_busy() {
                    return std::future::pending().await;
                }
                shared.is_watched.store(true, Ordering::Relaxed);
            }
            self.tick = Some(tick());
        }
        if let Some(tick) = &mut self.tick {
            tick.await;
        }
        self.tick = None;
        shared.reading.reader.tick();
        shared.read_now();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it bounds a delay and no lease depends on it; clocks of tests may have no timers"
)]
fn tick() -> BoxFuture<'static, ()> {
    Box::pin(tokio::time::sleep(SocketReader::TICK))
}

/// Sleeps until a deadline that seldom changes.
#[derive(Default)]
struct Timer(Option<(BootInstant, BoxFuture<'static, ()>)>);

impl Timer {
    async fn reach(&mut self, shared: &Shared, deadline: BootInstant) {
        if self.0.as_ref().is_none_or(|(set, _)| *set != deadline) {
            self.0 = Some((deadline, shared.clock().sleep_until(deadline)));
        }
        if let Some((_, sleep)) = &mut self.0 {
            Pin::new(sleep).await;
        }
        self.0 = None;
    }
}
