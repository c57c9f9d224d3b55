use std::str::{FromStr, SplitWhitespace};

use serde::Serialize;

/// One critical section of a waiter, in nanoseconds on the one monotonic clock of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Section {
    pub(crate) waiter: usize,
    /// When it asked for the lock.
    pub(crate) asked: u64,
    /// When its acquire had returned.
    pub(crate) acquired: u64,
    /// Just before it called release.
    pub(crate) releasing: u64,
}

/// All that a subject did in one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sections: Vec<Section>,
    /// When those asked who waited at the end.
    pub(crate) pending: Vec<u64>,
    /// How often a waiter's acquire ended without the lock, and why the last time.
    pub(crate) gave_up: u64,
    pub(crate) why: String,
}

impl Record {
    /// Reads a line of a subject, and returns whether more will follow.
    pub(crate) fn take(&mut self, line: &str) -> Result<bool, String> {
        let garbage = || format!("a subject wrote {line:?}");
        let mut words = line.split_whitespace();
        match words.next() {
            Some("section") => self.sections.push(Section {
                waiter: next(&mut words).ok_or_else(garbage)?,
                asked: next(&mut words).ok_or_else(garbage)?,
                acquired: next(&mut words).ok_or_else(garbage)?,
                releasing: next(&mut words).ok_or_else(garbage)?,
            }),
            Some("pending") => {
                let _waiter: usize = next(&mut words).ok_or_else(garbage)?;
                self.pending.push(next(&mut words).ok_or_else(garbage)?);
            }
            Some("gave-up") => {
                self.gave_up = next(&mut words).ok_or_else(garbage)?;
                self.why = words.collect::<Vec<_>>().join(" ");
            }
            Some("finished") => return Ok(false),
            _ => return Err(garbage()),
        }
        Ok(true)
    }
}

fn next<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_record() {
        let mut record = Record::default();
        for line in ["section 3 10 20 30", "pending 4 25", "gave-up 2 too busy"] {
            assert_eq!(record.take(line), Ok(true));
        }
        assert_eq!(record.take("finished"), Ok(false));
        let section = Section {
            waiter: 3,
            asked: 10,
            acquired: 20,
            releasing: 30,
        };
        let expected = Record {
            sections: vec![section],
            pending: vec![25],
            gave_up: 2,
            why: "too busy".into(),
        };
        assert_eq!(record, expected);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_told() {
        for line in ["section 3 10 20", "section a 1 2 3", "hello", ""] {
            assert!(Record::default().take(line).is_err(), "{line:?}");
        }
    }
}
