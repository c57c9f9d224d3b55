//! What a quorum's members say of a record, and what follows: decided from their words alone.

use crate::error::{Effect, Error, ErrorKind};
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
    /// How many members refused it for a greater fence, or for a later step of this one.
    refused: usize,
    failures: Vec<MemberFailure>,
}

impl WriteRound {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            wrote: 0,
            superseded: None,
            refused: 0,
            failures: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, answer: Result<Wrote, MemberFailure>) {
        match answer {
            Ok(Wrote::Written) => self.wrote += 1,
            Ok(Wrote::Superseded(fence)) => {
                self.superseded = self.superseded.max(Some(fence));
                self.refused += 1;
            }
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
            // No majority will ever take it: to ask again is in vain.
            Some(fence) if self.refused >= majority(self.members) => {
                let text = format!(
                    "{} of {} members have seen fence {fence}, and others may have the value",
                    self.refused, self.members
                );
                Err(Error::new(ErrorKind::Fenced, text).with_unknown_effect())
            }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::member::MemberId;
    use crate::records::Stamp;

    fn fence(number: u64) -> Fence {
        Fence::new(number).unwrap()
    }

    /// A member that has a value with this stamp, for so many seconds more.
    fn has(number: u64, step: u32, seconds: u64) -> Reading {
        let fence = fence(number);
        let stamp = Stamp { fence, step };
        let remaining = Duration::from_secs(seconds);
        Reading::settled(Some(Written::new(stamp, *b"value", remaining)))
    }

    fn nothing() -> Reading {
        Reading::settled(None)
    }

    fn silent() -> MemberFailure {
        let error = Error::new(ErrorKind::Unreachable, "no answer").with_unknown_effect();
        MemberFailure::new(MemberId::new("m"), error)
    }

    fn refused() -> MemberFailure {
        let error = Error::new(ErrorKind::Unsupported, "keeps nothing");
        MemberFailure::new(MemberId::new("m"), error)
    }

    fn open(answers: Vec<Result<Opened, MemberFailure>>) -> Result<Opened, Error> {
        let mut round = OpenRound::new(5);
        answers.into_iter().for_each(|answer| round.count(answer));
        round.outcome()
    }

    fn write(answers: Vec<Result<Wrote, MemberFailure>>) -> Result<Wrote, Error> {
        let mut round = WriteRound::new(5);
        answers.into_iter().for_each(|answer| round.count(answer));
        round.outcome()
    }

    #[test]
    fn opening_finds_what_any_of_a_majority_has() {
        let opened = |readings: Vec<Reading>| {
            let answers = readings.into_iter().map(|it| Ok(Opened::Open(it)));
            match open(answers.collect()).unwrap() {
                Opened::Open(reading) => reading,
                superseded => panic!("{superseded:?}"),
            }
        };
        let found = opened(vec![nothing(), has(7, 1, 30), nothing()]);
        assert_eq!(found.written.unwrap().stamp.fence, fence(7));
        assert!(!found.settled, "one of five");
        let found = opened(vec![has(7, 2, 30), has(7, 1, 30), has(6, 9, 30)]);
        let written = found.written.unwrap();
        assert_eq!((written.stamp.fence, written.stamp.step), (fence(7), 2));
        assert!(!found.settled);
        let found = opened(vec![has(7, 2, 10), has(7, 2, 30), has(7, 2, 20)]);
        assert!(found.settled);
        let remaining = found.written.unwrap().remaining;
        assert_eq!(
            remaining,
            Duration::from_secs(30),
            "as long as any keeps it"
        );
        assert_eq!(opened(vec![nothing(); 3]), nothing());
    }

    #[test]
    fn a_greater_fence_matters_where_no_majority_was_opened() {
        let superseded = || Ok(Opened::Superseded(fence(9)));
        let opened = || Ok(Opened::Open(nothing()));
        let found = open(vec![
            superseded(),
            superseded(),
            opened(),
            opened(),
            opened(),
        ]);
        assert_eq!(found.unwrap(), Opened::Open(nothing()));
        let found = open(vec![
            superseded(),
            opened(),
            opened(),
            Err(silent()),
            Err(silent()),
        ]);
        assert_eq!(found.unwrap(), Opened::Superseded(fence(9)));
        let error = open(vec![opened(), opened(), Err(silent())]).unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::NoQuorum, Effect::Unknown)
        );
    }

    #[test]
    fn nothing_was_written_only_where_nobody_wrote_or_may_have() {
        let (wrote, superseded) = (|| Ok(Wrote::Written), || Ok(Wrote::Superseded(fence(9))));
        let three = [superseded(), superseded(), superseded()];
        let decided = write(vec![wrote(), superseded(), wrote(), superseded(), wrote()]);
        assert_eq!(decided.unwrap(), Wrote::Written);
        let nobody = [&three[..], &[Err(refused()), superseded()]].concat();
        assert_eq!(write(nobody).unwrap(), Wrote::Superseded(fence(9)));
        for perhaps in [wrote(), Err(silent())] {
            let one = [&three[..], &[perhaps, superseded()]].concat();
            let error = write(one).unwrap_err();
            let (kind, effect) = (error.kind(), error.effect());
            assert_eq!((kind, effect), (ErrorKind::Fenced, Effect::Unknown));
        }
        let few = write(vec![superseded(), superseded(), wrote(), Err(silent())]).unwrap_err();
        assert_eq!(few.kind(), ErrorKind::NoQuorum, "others may yet take it");
        assert_eq!(few.effect(), Effect::Unknown);
        let unasked = write(vec![Err(refused()), Err(refused()), Err(refused())]);
        let error = unasked.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unsupported, Effect::None)
        );
    }

    #[test]
    fn a_look_goes_on_until_a_majority_says_the_same() {
        let mut round = ReadRound::new(5);
        for reading in [has(7, 1, 30), nothing(), has(7, 1, 30), has(6, 1, 30)] {
            round.count(Ok(reading));
            assert!(!round.is_decided());
        }
        round.count(Ok(has(7, 1, 30)));
        assert!(round.is_decided() && round.outcome().unwrap().settled);
        let mut round = ReadRound::new(5);
        (0..3).for_each(|_| round.count(Ok(nothing())));
        assert!(round.is_decided());
        let mut round = ReadRound::new(5);
        round.count(Ok(has(7, 1, 30)));
        round.count(Err(silent()));
        assert_eq!(round.outcome().unwrap_err().kind(), ErrorKind::NoQuorum);
    }
}
