use leasehold::Mode;
use leasehold::store::{Busy, LockRequest, Permits};

use crate::client::{EtcdClient, Watch, WatchedKeys};
use crate::locking::{Decision, Entry, Names, Snapshot};
use crate::proto::Event;

/// What a waiter waits for.
pub(super) struct Waiting<'a> {
    names: &'a Names,
    request: &'a LockRequest,
    keys: WatchedKeys,
    /// The keys of the entries before it.
    before: Vec<Vec<u8>>,
    /// When the entries were read.
    revision: i64,
}

/// What a watch reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The entries changed at this revision, or may have.
    Changed(i64),
    /// The holder before it is gone. It was granted the lock at this revision, alone and from its place in the queue.
    LastGrantAt(i64),
    /// The watch ended.
    Nothing,
}

impl<'a> Waiting<'a> {
    /// Returns what a client waits for that may not have the lock yet, by what it read at this revision.
    pub(super) fn of(
        names: &'a Names,
        request: &'a LockRequest,
        decision: &Decision,
        revision: i64,
    ) -> Self {
        let (range, before) = match decision {
            Decision::Behind(entry) => ((entry.key.clone(), Vec::new()), vec![entry.key.clone()]),
            Decision::Full(before) => (names.all(&request.key), before.clone()),
            Decision::Free | Decision::PermitsDiffer(_) => Default::default(),
        };
        let (key, range_end) = range;
        let keys = WatchedKeys {
            key,
            range_end,
            // A holder that shares its lock from now on writes its entry again.
            puts: request.mode == Mode::Shared,
            deleted_value: request.mode == Mode::Exclusive,
        };
        Self {
            names,
            request,
            keys,
            before,
            revision,
        }
    }

    fn told(&self, event: Event) -> Told {
        let revision = event.revision();
        let last = event.prev_kv.filter(|_| self.request.is_queued());
        let last = last.and_then(|kv| Entry::read(self.names, self.request.key.as_str(), kv));
        match last.and_then(|entry| entry.was_granted_alone()) {
            Some(granted) if self.request.mode == Mode::Exclusive => Told::LastGrantAt(granted),
            _ => Told::Changed(revision),
        }
    }
}

/// Waits until the watched keys change, or until few enough entries are left for a permit. `open` is the watch of the last wait.
pub(super) async fn told(
    client: &EtcdClient,
    open: &mut Option<(WatchedKeys, Watch)>,
    waiting: &Waiting<'_>,
) -> Told {
    let told = async {
        // A watch that is open already has reported all changes since the last look.
        if open
            .as_ref()
            .is_none_or(|(watched, _)| *watched != waiting.keys)
        {
            let mut watch = client.current()?.watches().watch(&waiting.keys);
            let begun = watch.begun().await?;
            *open = Some((waiting.keys.clone(), watch));
            if begun > waiting.revision {
                // Something changed in between, perhaps here.
                return Some(Told::Changed(begun));
            }
        }
        let (_, watch) = open.as_mut()?;
        let permits = waiting.request.mode.permits().map_or(1, Permits::get) as usize;
        let mut before = waiting.before.clone();
        loop {
            let event = watch.next().await?;
            before.retain(|key| event.deleted() != Some(key.as_slice()));
            if waiting.keys.puts || before.len() < permits {
                return Some(waiting.told(event));
            }
        }
    };
    told.await.unwrap_or(Told::Nothing)
}

/// Names the holder, if what was read says who it is.
pub(super) fn busy(snapshot: &Snapshot, decision: &Decision) -> Busy {
    let nearest = match decision {
        Decision::Behind(entry) => Some(&**entry),
        _ => None,
    };
    let mut known = nearest.into_iter().chain(snapshot.first());
    Busy::by(known.find(|entry| entry.is_held()).and_then(Entry::owner))
}
