use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::measure::record::Section;

/// What the waiters of this process did, on one clock.
#[derive(Debug)]
pub(super) struct Log {
    began: Instant,
    entries: Mutex<Entries>,
}

#[derive(Debug)]
struct Entries {
    sections: Vec<Section>,
    /// When each waiter that waits now had asked.
    pending: Vec<Option<u64>>,
    gave_up: u64,
    why: String,
}

/// Reserved in advance, so that the log does not grow during the measurement.
const SECTIONS: usize = 100_000;

impl Log {
    pub(super) fn new(waiters: usize) -> Self {
        let entries = Entries {
            sections: Vec::with_capacity(SECTIONS),
            pending: vec![None; waiters],
            gave_up: 0,
            why: String::new(),
        };
        Self {
            began: Instant::now(),
            entries: Mutex::new(entries),
        }
    }

    /// Nanoseconds since the worker began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn asks(&self, waiter: usize) -> u64 {
        let now = self.now();
        self.entries().pending[waiter] = Some(now);
        now
    }

    pub(super) fn gets(&self, waiter: usize) -> u64 {
        let now = self.now();
        self.entries().pending[waiter] = None;
        now
    }

    /// To be called just before release is.
    pub(super) fn leaves(&self, waiter: usize, asked: u64, acquired: u64) {
        let releasing = self.now();
        self.entries().sections.push(Section {
            waiter,
            asked,
            acquired,
            releasing,
        });
    }

    pub(super) fn gives_up(&self, why: String) {
        let mut entries = self.entries();
        entries.gave_up += 1;
        entries.why = why;
    }

    /// The lines that `record.rs` reads.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let entries = self.entries();
        // Writing to a string cannot fail.
        for section in &entries.sections {
            let Section {
                waiter,
                asked,
                acquired,
                releasing,
            } = section;
            let _ = writeln!(text, "section {waiter} {asked} {acquired} {releasing}");
        }
        for (waiter, asked) in entries.pending.iter().enumerate() {
            if let Some(asked) = asked {
                let _ = writeln!(text, "pending {waiter} {asked}");
            }
        }
        let why = entries.why.replace('\n', " ");
        let _ = write!(text, "gave-up {} {why}\nfinished", entries.gave_up);
        text
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::Record;

    #[test]
    fn what_is_written_is_what_is_read() {
        let log = Log::new(2);
        let asked = log.asks(0);
        let acquired = log.gets(0);
        log.leaves(0, asked, acquired);
        let pending = log.asks(1);
        log.gives_up("no\nquorum".into());
        let mut record = Record::default();
        let text = log.text();
        let mut lines = text.lines();
        while record
            .take(lines.next().expect("a last line"))
            .expect("sense")
        {}
        assert_eq!(record.pending, [pending]);
        assert_eq!((record.gave_up, record.why.as_str()), (1, "no quorum"));
        let [section] = record.sections[..] else {
            panic!("{record:?}");
        };
        assert_eq!((section.asked, section.acquired), (asked, acquired));
        assert!(section.releasing >= acquired);
    }
}
