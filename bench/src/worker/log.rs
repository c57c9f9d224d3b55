use std::fmt::Display;
use std::sync::Mutex;
use std::time::Instant;

use crate::measure::record::{Record, Section};
use leasehold::store::locked;

/// What the waiters of this process did, on one clock.
#[derive(Debug)]
pub(super) struct Log {
    began: Instant,
    entries: Mutex<Entries>,
}

#[derive(Debug)]
struct Entries {
    record: Record,
    /// When each waiter that waits now had asked.
    pending: Vec<Option<u64>>,
}

/// Reserved in advance, so that the log does not grow during the measurement.
const SECTIONS: usize = 100_000;

impl Log {
    pub(super) fn new(waiters: usize) -> Self {
        let record = Record {
            sections: Vec::with_capacity(SECTIONS),
            ..Record::default()
        };
        let pending = vec![None; waiters];
        Self {
            began: Instant::now(),
            entries: Mutex::new(Entries { record, pending }),
        }
    }

    /// Nanoseconds since the worker began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn asks(&self, waiter: usize) -> u64 {
        let now = self.now();
        locked(&self.entries).pending[waiter] = Some(now);
        now
    }

    pub(super) fn gets(&self, waiter: usize) -> u64 {
        let now = self.now();
        locked(&self.entries).pending[waiter] = None;
        now
    }

    /// To be called just before release is.
    pub(super) fn leaves(&self, waiter: usize, asked: u64, acquired: u64) {
        let releasing = self.now();
        locked(&self.entries).record.sections.push(Section {
            waiter,
            asked,
            acquired,
            releasing,
        });
    }

    pub(super) fn gives_up(&self, why: &dyn Display) {
        let mut entries = locked(&self.entries);
        entries.record.gave_up += 1;
        entries.record.why = why.to_string();
    }

    /// Ends the record and returns it.
    pub(super) fn finish(&self) -> Record {
        let mut entries = locked(&self.entries);
        let pending = entries.pending.iter().flatten().copied().collect();
        Record {
            pending,
            ..std::mem::take(&mut entries.record)
        }
    }
}
