use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use leasehold::store::{SessionContext, locked};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::caller::Caller;
use super::duplex::Duplex;
use crate::proto::{
    Event, EventType, WATCH_PATH, WatchCancelRequest, WatchCommand, WatchCreateRequest,
    WatchFilter, WatchRequest, WatchResponse,
};

/// The stream of all watches of a client.
#[derive(Debug)]
pub(crate) struct Watches(Arc<WatchesInner>);

#[derive(Debug)]
struct WatchesInner {
    stream: Duplex<WatchRequest>,
    open: Arc<Mutex<OpenWatches>>,
    /// Has a token for each open watch.
    busy: TaskTracker,
}

#[derive(Debug, Default)]
struct OpenWatches {
    /// The channel of each watch.
    messages: HashMap<i64, UnboundedSender<Message>>,
    last_id: i64,
    has_ended: bool,
}

/// A message of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    /// The server reports all changes after this revision.
    Begun(i64),
    /// A channel has room for many messages from the start, so they are small.
    Changed(Box<Event>),
}

/// What a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedKeys {
    pub(crate) key: Vec<u8>,
    /// Empty for the key alone; otherwise the first key after the range.
    pub(crate) range_end: Vec<u8>,
    /// Whether the watch reports puts, and not only deletes.
    pub(crate) puts: bool,
    /// Whether it reports the value of a deleted key.
    pub(crate) deleted_value: bool,
}

/// An open watch. Dropping it ends it at the server.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Those of its watches at the server.
    ids: Range<i64>,
    messages: UnboundedReceiver<Message>,
    inner: Arc<WatchesInner>,
    /// While it exists, the client checks the connection.
    _busy: TaskTrackerToken,
}

impl Watches {
    pub(super) fn new(
        context: &SessionContext,
        caller: &Caller,
        busy: &TaskTracker,
        closed: &CancellationToken,
    ) -> Self {
        let open = Arc::<Mutex<OpenWatches>>::default();
        let (reading, ending) = (Arc::clone(&open), Arc::clone(&open));
        let connection = closed.clone();
        let read = move |answer: WatchResponse| {
            if answer.canceled && answer.cancel_reason.contains("auth") {
                // The token of the stream is over. The next connection gets another one.
                connection.cancel();
            }
            locked(&reading).answered(answer);
        };
        let end = move || {
            let mut open = locked(&ending);
            open.has_ended = true;
            open.messages.clear();
        };
        let stream = Duplex::new(context, (caller, WATCH_PATH), closed, read, end);
        Self(Arc::new(WatchesInner {
            stream,
            open,
            busy: busy.clone(),
        }))
    }

    /// Watches `keys` from now on: [`Watch::begun`] says since when.
    ///
    /// A watch from an earlier revision on would miss nothing. But a server that is asked for the past reports that
    /// watch's changes only every 100 ms.
    ///
    /// A server does the same to a watch if something is written just when it begins. So a single key has two watches: it is
    /// unlikely that both begin late. The second report of a deletion makes the waiter look once more at most.
    pub(crate) fn watch(&self, keys: &WatchedKeys) -> Watch {
        let (sender, messages) = unbounded_channel();
        let count = if keys.range_end.is_empty() { 2 } else { 1 };
        let mut open = locked(&self.0.open);
        let ids = open.last_id + 1..open.last_id + 1 + count;
        open.last_id += count;
        if !open.has_ended {
            let senders = ids.clone().map(|id| (id, sender.clone()));
            open.messages.extend(senders);
        }
        drop(open);
        let filters = (!keys.puts).then_some(WatchFilter::NoPut as i32);
        for watch_id in ids.clone() {
            self.0.send(WatchCommand::Create(WatchCreateRequest {
                key: keys.key.clone(),
                range_end: keys.range_end.clone(),
                filters: filters.into_iter().collect(),
                prev_kv: keys.deleted_value,
                watch_id,
            }));
        }
        let inner = Arc::clone(&self.0);
        let busy = inner.busy.token();
        Watch {
            ids,
            messages,
            inner,
            _busy: busy,
        }
    }
}

impl WatchesInner {
    fn send(&self, command: WatchCommand) {
        let command = Some(command);
        self.stream.send(WatchRequest { command });
    }
}

impl OpenWatches {
    fn answered(&mut self, answer: WatchResponse) {
        if answer.canceled {
            let reason = answer.cancel_reason;
            tracing::debug!(reason, "etcd cancelled a watch");
            self.messages.remove(&answer.watch_id);
            return;
        }
        // A watch that was dropped meanwhile has no receiver.
        let Some(messages) = self.messages.get(&answer.watch_id) else {
            return;
        };
        if answer.created {
            let revision = answer.header.map_or(0, |header| header.revision);
            let _ = messages.send(Message::Begun(revision));
        }
        for event in answer.events {
            let _ = messages.send(Message::Changed(Box::new(event)));
        }
    }
}

impl Watch {
    /// Waits until the server has begun to watch, and returns the revision after which it reports all changes. Returns
    /// `None` if the server ended the watch.
    pub(crate) async fn begun(&mut self) -> Option<i64> {
        loop {
            if let Message::Begun(revision) = self.messages.recv().await? {
                return Some(revision);
            }
        }
    }

    /// Waits for the next change. Returns `None` if the server ended the watch.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Message::Changed(event) = self.messages.recv().await? {
                return Some(*event);
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for watch_id in self.ids.clone() {
            let removed = locked(&self.inner.open).messages.remove(&watch_id);
            if removed.is_some() {
                let cancel = WatchCommand::Cancel(WatchCancelRequest { watch_id });
                self.inner.send(cancel);
            }
        }
    }
}

impl Event {
    /// Returns the key that was deleted.
    pub(crate) fn deleted(&self) -> Option<&[u8]> {
        let is_delete = self.kind == EventType::Delete as i32;
        let kv = self.kv.as_ref().filter(|_| is_delete);
        kv.map(|kv| kv.key.as_slice())
    }

    /// Returns the revision of the change.
    pub(crate) fn revision(&self) -> i64 {
        self.kv.as_ref().map_or(0, |kv| kv.mod_revision)
    }
}
