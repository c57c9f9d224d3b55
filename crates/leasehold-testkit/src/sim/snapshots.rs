use std::collections::VecDeque;
use std::time::Duration;

use leasehold::{MemorySnapshot, MemoryStore};

/// What a server held at some moments of the last seconds: what may be on its disk.
#[derive(Debug, Default)]
pub(crate) struct Snapshots(VecDeque<(Duration, MemorySnapshot)>);

impl Snapshots {
    /// Keeps what `store` holds now, unless that was done a moment ago.
    pub(crate) fn take(&mut self, now: Duration, store: &MemoryStore) {
        let latest = self.0.back().map(|(at, _)| *at);
        if latest.is_some_and(|at| now - at < EVERY) {
            return;
        }
        self.0.push_back((now, store.snapshot()));
        if self.0.len() > MAX {
            self.0.pop_front();
        }
    }

    /// The last one before `wanted`, or the oldest there is; it and all before it are gone then.
    pub(crate) fn take_back_to(&mut self, wanted: Duration) -> Option<MemorySnapshot> {
        while self.0.len() > 1 && self.0[1].0 <= wanted {
            self.0.pop_front();
        }
        self.0.pop_front().map(|(_, snapshot)| snapshot)
    }
}

const EVERY: Duration = Duration::from_millis(300);
const MAX: usize = 16;
