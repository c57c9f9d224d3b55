use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::time::Instant;

use crate::measure::record::Section;

/// What the waiters of this process did, on one clock.
#[derive(Debug)]
pub(super) struct Log {
    began: Instant,
    sections: RefCell<Vec<Section>>,
    /// When each waiter that waits now had asked.
    pending: RefCell<Vec<Option<u64>>>,
    gave_up: Cell<u64>,
    why: RefCell<String>,
}

/// Reserved in advance, so that the log does not grow during the measurement.
const SECTIONS: usize = 100_000;

impl Log {
    pub(super) fn new(waiters: usize) -> Self {
        Self {
            began: Instant::now(),
            sections: RefCell::new(Vec::with_capacity(SECTIONS)),
            pending: RefCell::new(vec![None; waiters]),
            gave_up: Cell::new(0),
            why: RefCell::default(),
        }
    }

    /// Nanoseconds since the worker began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn asks(&self, waiter: usize) -> u64 {
        let now = self.now();
        self.pending.borrow_mut()[waiter] = Some(now);
        now
    }

    pub(super) fn gets(&self, waiter: usize) -> u64 {
        let now = self.now();
        self.pending.borrow_mut()[waiter] = None;
        now
    }

    /// To be called just before release is.
    pub(super) fn leaves(&self, waiter: usize, asked: u64, acquired: u64) {
        let releasing = self.now();
        self.sections.borrow_mut().push(Section {
            waiter,
            asked,
            acquired,
            releasing,
        });
    }

    pub(super) fn gives_up(&self, why: String) {
        self.gave_up.set(self.gave_up.get() + 1);
        *self.why.borrow_mut() = why;
    }

    /// The lines that `record.rs` reads.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for section in &*self.sections.borrow() {
            let Section {
                waiter,
                asked,
                acquired,
                releasing,
            } = section;
            let _ = writeln!(text, "section {waiter} {asked} {acquired} {releasing}");
        }
        for (waiter, asked) in self.pending.borrow().iter().enumerate() {
            if let Some(asked) = asked {
                let _ = writeln!(text, "pending {waiter} {asked}");
            }
        }
        let why = self.why.borrow().replace('\n', " ");
        let _ = write!(text, "gave-up {} {why}\nfinished", self.gave_up.get());
        text
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
