use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use super::process::Process;
use super::running::poll_in_runtime;
use crate::env::BoxFuture;

/// A future that its caller polls, and that ends when the caller drops it. A forked child forgets it.
pub(crate) struct Call<'a, T> {
    /// `None` once it has ended.
    future: Option<BoxFuture<'a, T>>,
    process: &'a Process,
}

impl<'a, T> Call<'a, T> {
    pub(crate) fn new(future: BoxFuture<'a, T>, process: &'a Process) -> Self {
        let future = Some(future);
        Self { future, process }
    }
}

impl<T> Future for Call<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<T> Drop for Call<'_, T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take()
            && !self.process.is_current()
        {
            // A forked child has no thread, and may never get a mutex of its copy.
            mem::forget(future);
        }
    }
}

/// Polls `future` where the caller polls, within `runtime`: its timers, its sockets and what it spawns belong to that.
pub(crate) async fn in_runtime<F: Future>(runtime: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| poll_in_runtime(runtime, future.as_mut(), context)).await
}
