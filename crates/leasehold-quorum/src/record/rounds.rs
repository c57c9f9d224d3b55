//! What follows from the members' answers about a record.

use leasehold_types::{
    Effect, Error, ErrorKind, Fence, MemberFailure, Opened, Reading, WriteOutcome, Written,
};

use crate::ballot::majority;
use crate::errors::too_few;
use crate::messages::{RecordAction, RecordAnswer};

/// The answers of the members to one operation.
#[derive(Debug)]
pub(super) struct Round {
    members: usize,
    kind: RoundKind,
    /// The members that have a value, or report that there is none.
    found: Readings,
    /// How many members wrote.
    wrote: usize,
    /// How many members refused a write because of a greater fence, or a later step of this one.
    refused: usize,
    superseded: Option<Fence>,
    failures: Vec<MemberFailure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundKind {
    Open,
    Write,
    Read,
}

/// The values of the members.
#[derive(Debug, Default)]
struct Readings {
    /// How many members answered.
    heard: usize,
    greatest: Option<Written>,
    /// How many members have exactly that.
    same: usize,
}

impl Readings {
    fn add(&mut self, reading: Reading) {
        self.heard += 1;
        self.add_value(reading);
    }

    fn add_value(&mut self, reading: Reading) {
        let Some(written) = reading.written else {
            return;
        };
        match &mut self.greatest {
            Some(greatest) if greatest.version > written.version => {}
            Some(greatest) if greatest.version == written.version => {
                self.same += 1;
                greatest.remaining = greatest.remaining.max(written.remaining);
            }
            _ => {
                self.same = 1;
                self.greatest = Some(written);
            }
        }
    }

    fn reading(&self, members: usize) -> Reading {
        let mut reading = Reading::settled(self.greatest.clone());
        reading.settled = reading.written.is_none() || self.same >= majority(members);
        reading
    }
}

impl Round {
    pub(super) fn new(action: &RecordAction, members: usize) -> Self {
        let kind = match action {
            RecordAction::Open(_) => RoundKind::Open,
            RecordAction::Write(_) => RoundKind::Write,
            RecordAction::Read => RoundKind::Read,
        };
        Self {
            members,
            kind,
            found: Readings::default(),
            wrote: 0,
            refused: 0,
            superseded: None,
            failures: Vec::new(),
        }
    }

    pub(super) fn fail(&mut self, failure: MemberFailure) {
        self.failures.push(failure);
    }

    /// Takes in an answer of a member that has a vote.
    pub(super) fn count(&mut self, answer: RecordAnswer) {
        match answer {
            RecordAnswer::Opened(Opened::Open(reading)) | RecordAnswer::Read(reading) => {
                self.found.add(reading);
            }
            RecordAnswer::Opened(Opened::Superseded(fence)) => {
                self.superseded = self.superseded.max(Some(fence));
            }
            RecordAnswer::Written(WriteOutcome::Superseded(fence)) => {
                self.superseded = self.superseded.max(Some(fence));
                self.refused += 1;
            }
            RecordAnswer::Written(WriteOutcome::Written) => self.wrote += 1,
        }
    }

    /// Takes in an answer of a member that may have forgotten a value. It cannot say that there is none, but a reader
    /// may count the value that it has.
    pub(super) fn count_value(&mut self, answer: RecordAnswer) {
        if let RecordAnswer::Read(reading) = answer {
            self.found.add_value(reading);
        }
    }

    /// Returns whether more answers change nothing. A reader continues until a majority has the same value:
    /// the value of a minority may still become that of a majority.
    pub(super) fn is_decided(&self) -> bool {
        let needed = majority(self.members);
        match self.kind {
            RoundKind::Open => self.found.heard >= needed,
            RoundKind::Write => self.wrote >= needed,
            RoundKind::Read => {
                let is_nothing = self.found.greatest.is_none() && self.found.heard >= needed;
                is_nothing || self.found.same >= needed
            }
        }
    }

    /// Returns the result: from all members, unless it was decided before.
    pub(super) fn outcome(&self) -> Result<RecordAnswer, Error> {
        match self.kind {
            RoundKind::Open => self.opened().map(RecordAnswer::Opened),
            RoundKind::Write => self.written().map(RecordAnswer::Written),
            RoundKind::Read => self.read().map(RecordAnswer::Read),
        }
    }

    /// A greater fence at any member shows that there is a later holder.
    fn opened(&self) -> Result<Opened, Error> {
        if self.is_decided() {
            return Ok(Opened::Open(self.found.reading(self.members)));
        }
        match self.superseded {
            Some(fence) => Ok(Opened::Superseded(fence)),
            None => Err(too_few(self.members, 0, self.failures.clone()).with_unknown_effect()),
        }
    }

    /// If one member wrote or may have written, a later holder may find the value and complete it. The
    /// write certainly had no effect only if no member wrote.
    fn written(&self) -> Result<WriteOutcome, Error> {
        if self.is_decided() {
            return Ok(WriteOutcome::Written);
        }
        let may_have = |failure: &MemberFailure| failure.error.effect() == Effect::Unknown;
        let is_nowhere = self.wrote == 0 && !self.failures.iter().any(may_have);
        match self.superseded {
            Some(fence) if is_nowhere => Ok(WriteOutcome::Superseded(fence)),
            // No majority will ever take it, so asking again does not help.
            Some(fence) if self.refused >= majority(self.members) => {
                let text = format!(
                    "{} of {} members have seen fence {fence}, and others may have the value",
                    self.refused, self.members
                );
                Err(Error::new(ErrorKind::Fenced, text).with_unknown_effect())
            }
            _ => {
                let error = too_few(self.members, 0, self.failures.clone());
                Err(match is_nowhere {
                    true => error,
                    false => error.with_unknown_effect(),
                })
            }
        }
    }

    fn read(&self) -> Result<Reading, Error> {
        if self.is_decided() || self.found.heard >= majority(self.members) {
            return Ok(self.found.reading(self.members));
        }
        Err(too_few(self.members, 0, self.failures.clone()))
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
