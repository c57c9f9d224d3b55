//! What a quorum's members say of a record, and what follows: decided from their words alone.

use crate::error::{Effect, Error};
use crate::fence::Fence;
use crate::member::MemberFailure;
use crate::quorum::ballot::majority;
use crate::quorum::election::too_few;
use crate::records::{Opened, Reading, Written, Wrote};

/// What members have, of those whose word counts.
#[derive(Debug, Default)]
struct Found {
    heard: usize,
    greatest: Option<Written>,
    /// How many have exactly that.
    same: usize,
}

impl Found {
    fn count(&mut self, reading: Reading) {
        self.heard += 1;
        let Some(written) = reading.written else {
            return;
        };
        match &mut self.greatest {
            Some(greatest) if greatest.stamp > written.stamp => {}
            Some(greatest) if greatest.stamp == written.stamp => {
                self.same += 1;
                greatest.remaining = greatest.remaining.max(written.remaining);
            }
            _ => {
                self.same = 1;
                self.greatest = Some(written);
            }
        }
    }

    fn reading(self, members: usize) -> Reading {
        Reading {
            settled: self.greatest.is_none() || self.same >= majority(members),
            written: self.greatest,
        }
    }
}

/// Opening a record at all members.
#[derive(Debug)]
pub(super) struct OpenRound {
    members: usize,
    found: Found,
    superseded: Option<Fence>,
    failures: Vec<MemberFailure>,
}

impl OpenRound {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            found: Found::default(),
            superseded: None,
            failures: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, answer: Result<Opened, MemberFailure>) {
        match answer {
            Ok(Opened::Open(reading)) => self.found.count(reading),
            Ok(Opened::Superseded(fence)) => self.superseded = self.superseded.max(Some(fence)),
            Err(failure) => self.failures.push(failure),
        }
    }

    /// Whether more answers would change nothing.
    pub(super) fn is_decided(&self) -> bool {
        self.found.heard >= majority(self.members)
    }

    /// What follows from the answers. A greater fence anywhere tells of a later holder.
    pub(super) fn outcome(self) -> Result<Opened, Error> {
        if self.is_decided() {
            return Ok(Opened::Open(self.found.reading(self.members)));
        }
        match self.superseded {
            Some(fence) => Ok(Opened::Superseded(fence)),
            None => Err(too_few(self.members, 0, self.failures).with_unknown_effect()),
        }
    }
}

/// Writing a record at all members.
#[derive(Debug)]
pub(super) struct WriteRound {
    members: usize,
    wrote: usize,
    superseded: Option<Fence>,
    failures: Vec<MemberFailure>,
}

impl WriteRound {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            wrote: 0,
            superseded: None,
            failures: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, answer: Result<Wrote, MemberFailure>) {
        match answer {
            Ok(Wrote::Written) => self.wrote += 1,
            Ok(Wrote::Superseded(fence)) => self.superseded = self.superseded.max(Some(fence)),
            Err(failure) => self.failures.push(failure),
        }
    }

    /// Whether more answers would change nothing.
    pub(super) fn is_decided(&self) -> bool {
        self.wrote >= majority(self.members)
    }

    /// What follows from the answers, of all members unless a majority wrote. One that wrote, or may
    /// have, is enough for a later holder to find the value and to take it up: only where none did is
    /// it certain that nothing was written.
    pub(super) fn outcome(self) -> Result<Wrote, Error> {
        if self.is_decided() {
            return Ok(Wrote::Written);
        }
        let perhaps = |failure: &MemberFailure| failure.error.effect() == Effect::Unknown;
        let nowhere = self.wrote == 0 && !self.failures.iter().any(perhaps);
        match self.superseded {
            Some(fence) if nowhere => Ok(Wrote::Superseded(fence)),
            _ => {
                let error = too_few(self.members, 0, self.failures);
                Err(if nowhere {
                    error
                } else {
                    error.with_unknown_effect()
                })
            }
        }
    }
}

/// Reading a record at all members.
#[derive(Debug)]
pub(super) struct ReadRound {
    members: usize,
    found: Found,
    failures: Vec<MemberFailure>,
}

impl ReadRound {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            found: Found::default(),
            failures: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, answer: Result<Reading, MemberFailure>) {
        match answer {
            Ok(reading) => self.found.count(reading),
            Err(failure) => self.failures.push(failure),
        }
    }

    /// Whether a majority said the same; where it did not, others may help it to one.
    pub(super) fn is_decided(&self) -> bool {
        let needed = majority(self.members);
        let nothing = self.found.greatest.is_none() && self.found.heard >= needed;
        nothing || self.found.same >= needed
    }

    pub(super) fn outcome(self) -> Result<Reading, Error> {
        if self.found.heard < majority(self.members) {
            return Err(too_few(self.members, 0, self.failures));
        }
        Ok(self.found.reading(self.members))
    }
}
