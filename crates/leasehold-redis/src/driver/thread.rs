//! The I/O thread of a client: the only place of the driver that starts a thread or tasks.

use std::pin::Pin;
use std::sync::Arc;

use leasehold::Error;
use leasehold::clock::BootInstant;
use leasehold::store::background::ThreadRuntime;
use leasehold::store::{BoxFuture, background};

use super::connection_task::ConnectionTask;
use super::shared::{Shared, Side};

/// Starts the thread, which keeps the connections of `tasks` open until the driver is closed and has nothing left
/// to do.
pub(super) fn start(shared: Arc<Shared>, tasks: Vec<ConnectionTask>) -> Result<(), Error> {
    let runtime = ThreadRuntime::new()?;
    background::thread("leasehold-io", move || {
        let end = End(Arc::clone(&shared));
        runtime.block_on(run(&shared, tasks));
        drop(runtime);
        drop(end);
    })
}

/// Tells all callers that the thread ended, also if it panicked.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

async fn run(shared: &Arc<Shared>, tasks: Vec<ConnectionTask>) {
    for task in tasks {
        drop(background::spawn(task.keep(Arc::clone(shared))));
    }
    let mut timer = Timer::default();
    while let Some(deadline) = turn(shared) {
        tokio::select! {
            biased;
            () = shared.notified() => {}
            () = timer.reach(shared, deadline) => {}
        }
    }
}

/// Does what is due. Returns when to wake up again (at the end of time if only others wake the thread),
/// or `None` if the driver is closed and has nothing left to do.
fn turn(shared: &Shared) -> Option<BootInstant> {
    let deadline = shared.update(|state, now| {
        if state.timer.is_some_and(|timer| timer <= now.instant) {
            state.timer = None;
            state.handle_timeout(now);
        }
        // It is not moved back: a reply usually comes long before its deadline.
        state.timer = state.timer.or_else(|| state.next_timeout());
        state.timer
    });
    shared.advance(Side::Thread);
    let never = BootInstant::from_nanos(u64::MAX);
    (!shared.is_done()).then(|| deadline.unwrap_or(never))
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
