use std::fmt;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::store::Report;
use crate::types::{Fence, Key, LostReason};

/// What happened to a lock that a guard of this client holds or held, or that a call waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LockEvent {
    /// A call waits for the lock `key`. Reported when the wait begins, and when it has another reason: the lock is busy, the
    /// store does not answer, or it fails in another way.
    Waiting {
        /// The lock.
        key: Key,
        /// Why the store cannot grant the lock yet.
        reason: Report,
    },
    /// The client was granted the lock `key`, or adopted it by a handle.
    Acquired {
        /// The lock.
        key: Key,
        /// The fence of the grant.
        fence: Fence,
    },
    /// The holder released the lock.
    Released {
        /// The lock.
        key: Key,
        /// The fence of the grant.
        fence: Fence,
    },
    /// The guard became a [`Handle`](crate::handle::Handle): the client no longer renews the lease.
    Detached {
        /// The lock.
        key: Key,
        /// The fence of the grant.
        fence: Fence,
    },
    /// The guard is lost.
    Lost {
        /// The lock.
        key: Key,
        /// The fence of the grant.
        fence: Fence,
        /// Why the guard is lost.
        reason: LostReason,
    },
    /// Other clients began to wait for the lock. Reported once, until a look at the queue finds it empty.
    Contended {
        /// The lock.
        key: Key,
        /// The fence of the grant.
        fence: Fence,
        /// How many clients wait.
        waiters: usize,
    },
    /// The stream was read too slowly and left out that many events.
    Missed(u64),
}

/// A stream of what happens to the locks of a client; [`next`](Self::next) reads it by hand.
///
/// The events of one lock come in their order. The stream begins with the first event after the call of
/// [`Client::events`](crate::Client::events), and ends with the client. It keeps the last 1,024 events that were
/// not read; if there are more, [`LockEvent::Missed`] counts the events that are gone.
///
/// The client asks who waits for a lock when it renews the lease, every third of the TTL, and only while a
/// stream exists. Each such look is one request. A store that knows no waiters reports no contention.
///
/// # Cancel safety
///
/// May be dropped at any time, and so may each [`next`](Self::next): the following call continues.
pub struct LockEvents {
    events: Pin<Box<dyn Stream<Item = LockEvent> + Send>>,
}

impl LockEvents {
    /// Returns the next event; `None` once the client has ended.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: no event is lost.
    pub async fn next(&mut self) -> Option<LockEvent> {
        self.events.next().await
    }
}

impl Stream for LockEvents {
    type Item = LockEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LockEvent>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for LockEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockEvents").finish_non_exhaustive()
    }
}

/// The source of all streams of a client. Without a stream, an event costs a branch.
#[derive(Debug, Default)]
pub(crate) struct EventSource(OnceLock<broadcast::Sender<LockEvent>>);

impl EventSource {
    /// Returns a stream of the events from now on.
    pub(crate) fn subscribe(&self) -> LockEvents {
        let sender = self.0.get_or_init(|| broadcast::channel(UNREAD_MAX).0);
        let events = stream::unfold(sender.subscribe(), async |mut receiver| {
            let event = match receiver.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(missed)) => LockEvent::Missed(missed),
                Err(RecvError::Closed) => return None,
            };
            Some((event, receiver))
        });
        LockEvents {
            events: Box::pin(events),
        }
    }

    /// Returns whether a stream exists.
    pub(crate) fn is_read(&self) -> bool {
        let sender = self.0.get();
        sender.is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Reports an event, if a stream exists.
    pub(crate) fn send(&self, event: impl FnOnce() -> LockEvent) {
        if let Some(sender) = self.0.get() {
            // Fails if the last stream is gone.
            let _ = sender.send(event());
        }
    }
}

/// How many events a stream keeps that were not read.
const UNREAD_MAX: usize = 1024;
