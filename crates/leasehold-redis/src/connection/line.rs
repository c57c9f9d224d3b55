use std::sync::Arc;

use leasehold::{Error, background};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::answer::Answer;
use super::command::Command;
use super::driver::Driver;
use super::joining::Joining;
use super::listener::{EndOf, Inboxes};
use super::outbox::{Outbox, Replies};
use super::socket::Stream;
use super::writing::Writing;
use crate::sample;

/// A stream to a server, and the task that reads and writes for it; the socket is closed when that
/// ends.
pub(super) struct Line {
    outbox: Arc<Outbox>,
    task: AbortHandle,
    /// Has a sender for as long as the socket is open.
    open: watch::Receiver<()>,
}

impl Line {
    pub(super) fn start(stream: Box<dyn Stream>, inboxes: &Arc<Inboxes>) -> Self {
        let outbox = Arc::new(Outbox::new(&sample::questions()));
        let driver = Driver::new(stream, Arc::clone(&outbox), Arc::clone(inboxes.listener()));
        let (closing, open) = watch::channel(());
        // In this order, also where the task is aborted: who hears that the connection is gone may ask
        // again at once, and must not find this one.
        let end = (closing, EndOf(Arc::clone(inboxes)));
        let task = background::spawn(async move {
            driver.await;
            drop(end);
        });
        let task = task.abort_handle();
        Self { outbox, task, open }
    }

    /// Sends `commands` in one write and waits for all answers.
    pub(super) async fn ask(&self, commands: &[Command]) -> Result<Vec<Answer>, Error> {
        let replies = self.outbox.ask(commands, false).await?;
        Ok(replies.answers.into_vec())
    }

    /// Sends what `write` writes, the same each time, and waits for all answers: where `is_shown`, also
    /// for what the server shows of itself then.
    pub(super) async fn ask_written(
        &self,
        write: impl Fn(&mut Writing<'_>),
        is_shown: bool,
    ) -> Result<Replies, Error> {
        self.outbox.ask_written(write, is_shown).await
    }

    /// As [`ask_written`](Self::ask_written), or in one command with the request in front of it.
    pub(super) async fn ask_joining(
        &self,
        write: impl Fn(&mut Writing<'_>),
        joining: &Joining<'_>,
    ) -> Result<Replies, Error> {
        self.outbox.ask_joining(write, joining).await
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.has_changed().is_ok()
    }

    pub(super) fn abort(&self) {
        self.task.abort();
    }

    /// Resolves once the socket is closed.
    pub(super) async fn closed(&self) {
        let mut open = self.open.clone();
        while open.changed().await.is_ok() {}
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}
