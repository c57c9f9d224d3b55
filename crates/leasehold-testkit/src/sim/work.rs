use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::history::{History, Hold, What};
use super::plan::Plan;
use crate::virtual_time::lock;

/// What the programs of all clients share.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) history: History,
    pub(crate) plan: Plan,
    over: AtomicBool,
    holds: AtomicUsize,
    /// A record per key that takes no write with a fence below the greatest so far.
    records: Mutex<Vec<u64>>,
}

impl Work {
    pub(crate) fn new(history: History, plan: Plan) -> Self {
        Self {
            history,
            over: AtomicBool::new(false),
            holds: AtomicUsize::new(0),
            records: Mutex::new(vec![0; plan.mix.keys()]),
            plan,
        }
    }

    /// Lets every program end as soon as it has given back what it holds.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn next_hold(&self) -> Hold {
        self.holds.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn read(&self, hold: Hold, key: usize, fence: u64) {
        let accepted = fence >= lock(&self.records)[key];
        self.history.add(What::Read {
            hold,
            key,
            fence,
            accepted,
        });
    }

    pub(crate) fn write(&self, hold: Hold, key: usize, fence: u64) {
        let accepted = {
            let mut records = lock(&self.records);
            let accepted = fence >= records[key];
            records[key] = records[key].max(fence);
            accepted
        };
        self.history.add(What::Wrote {
            hold,
            key,
            fence,
            accepted,
        });
    }
}
