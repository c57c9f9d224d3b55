use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use leasehold::store::SessionContext;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::connection::Caller;
use super::duplex::Duplex;
use crate::proto::{
    Event, EventType, WATCH_PATH, WatchCancelRequest, WatchCommand, WatchCreateRequest,
    WatchFilter, WatchRequest, WatchResponse,
};

/// The stream of all watches of a client.
#[derive(Debug)]
pub(crate) struct Watches(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stream: Duplex<WatchRequest>,
    open: Arc<Mutex<OpenWatches>>,
}

#[derive(Debug, Default)]
struct OpenWatches {
    /// Where the events of each watch go.
    events: HashMap<i64, UnboundedSender<Event>>,
    last_id: i64,
    has_ended: bool,
}

/// What a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedKeys {
    pub(crate) key: Vec<u8>,
    /// Empty for the key alone; otherwise the first key after the range.
    pub(crate) range_end: Vec<u8>,
    /// Whether the watch reports puts, and not only deletes.
    pub(crate) puts: bool,
}

/// An open watch. Dropping it ends it at the server.
#[derive(Debug)]
pub(crate) struct Watch {
    id: i64,
    events: UnboundedReceiver<Event>,
    inner: Arc<Inner>,
}

impl Watches {
    pub(super) fn new(
        context: &SessionContext,
        caller: &Caller,
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
            let mut open = reading.lock().unwrap_or_else(PoisonError::into_inner);
            open.answered(answer);
        };
        let end = move || {
            let mut open = ending.lock().unwrap_or_else(PoisonError::into_inner);
            open.has_ended = true;
            open.events.clear();
        };
        let stream = Duplex::new(context, (caller, WATCH_PATH), closed, read, end);
        Self(Arc::new(Inner { stream, open }))
    }

    /// Watches `keys` for changes after `revision`. Does not wait for the server: it reports from that revision on,
    /// however late the request arrives.
    pub(crate) fn watch(&self, keys: &WatchedKeys, revision: i64) -> Watch {
        let (sender, events) = unbounded_channel();
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.last_id += 1;
        let id = open.last_id;
        if !open.has_ended {
            open.events.insert(id, sender);
        }
        drop(open);
        let filters = (!keys.puts).then_some(WatchFilter::NoPut as i32);
        self.0.send(WatchCommand::Create(WatchCreateRequest {
            key: keys.key.clone(),
            range_end: keys.range_end.clone(),
            start_revision: revision + 1,
            filters: filters.into_iter().collect(),
            watch_id: id,
        }));
        let inner = Arc::clone(&self.0);
        Watch { id, events, inner }
    }
}

impl Inner {
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
            self.events.remove(&answer.watch_id);
            return;
        }
        // A watch that was dropped meanwhile has no receiver.
        if let Some(events) = self.events.get(&answer.watch_id) {
            for event in answer.events {
                let _ = events.send(event);
            }
        }
    }
}

impl Watch {
    /// Waits for the next change. Returns `None` if the server ended the watch: ask again.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut open = self
            .inner
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let was_open = open.events.remove(&self.id).is_some();
        drop(open);
        if was_open {
            let watch_id = self.id;
            let cancel = WatchCommand::Cancel(WatchCancelRequest { watch_id });
            self.inner.send(cancel);
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
}
