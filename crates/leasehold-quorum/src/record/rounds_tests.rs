use std::time::Duration;

use leasehold_types::{MemberId, RecordWrite, Version};

use super::*;

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

/// A member has a value with this version, for that number of seconds.
fn has(number: u64, step: u32, seconds: u64) -> Reading {
    let fence = fence(number);
    let version = Version { fence, step };
    let remaining = Duration::from_secs(seconds);
    Reading::settled(Some(Written::new(version, *b"value", remaining)))
}

fn nothing() -> Reading {
    Reading::settled(None)
}

fn failure(error: Error) -> MemberFailure {
    MemberFailure::new(MemberId::new("m"), error)
}

fn silent() -> MemberFailure {
    failure(Error::new(ErrorKind::Unreachable, "no answer").with_unknown_effect())
}

fn refused() -> MemberFailure {
    failure(Error::new(ErrorKind::Unsupported, "keeps nothing"))
}

fn opening() -> Round {
    Round::new(&RecordAction::Open(fence(8)), 5)
}

fn writing() -> Round {
    let version = Version {
        fence: fence(8),
        step: 1,
    };
    let write = RecordWrite::new(version, *b"value", Duration::from_secs(30)).unwrap();
    Round::new(&RecordAction::Write(write), 5)
}

fn reading() -> Round {
    Round::new(&RecordAction::Read, 5)
}

fn count<T>(
    mut round: Round,
    answers: impl IntoIterator<Item = Result<T, MemberFailure>>,
    wrap: impl Fn(T) -> RecordAnswer,
) -> Round {
    for answer in answers {
        match answer {
            Ok(answer) => round.count(wrap(answer)),
            Err(failure) => round.fail(failure),
        }
    }
    round
}

fn open(answers: impl IntoIterator<Item = Result<Opened, MemberFailure>>) -> Result<Opened, Error> {
    count(opening(), answers, RecordAnswer::Opened).opened()
}

fn write(
    answers: impl IntoIterator<Item = Result<WriteOutcome, MemberFailure>>,
) -> Result<WriteOutcome, Error> {
    count(writing(), answers, RecordAnswer::Written).written()
}

fn superseded() -> Result<WriteOutcome, MemberFailure> {
    Ok(WriteOutcome::Superseded(fence(9)))
}

fn wrote() -> Result<WriteOutcome, MemberFailure> {
    Ok(WriteOutcome::Written)
}

#[test]
fn opening_finds_the_greatest_version_of_a_majority() {
    let opened = |readings: Vec<Reading>| {
        let answers = readings.into_iter().map(|it| Ok(Opened::Open(it)));
        match open(answers).unwrap() {
            Opened::Open(reading) => reading,
            superseded => panic!("{superseded:?}"),
        }
    };
    let found = opened(vec![nothing(), has(7, 1, 30), nothing()]);
    assert_eq!(found.written.unwrap().version.fence, fence(7));
    assert!(!found.settled, "one of five");
    let found = opened(vec![has(7, 2, 30), has(7, 1, 30), has(6, 9, 30)]);
    let written = found.written.unwrap();
    assert_eq!((written.version.fence, written.version.step), (fence(7), 2));
    assert!(!found.settled);
    let found = opened(vec![has(7, 2, 10), has(7, 2, 30), has(7, 2, 20)]);
    assert!(found.settled);
    let remaining = found.written.unwrap().remaining;
    assert_eq!(remaining, Duration::from_secs(30), "the longest retention");
    assert_eq!(opened(vec![nothing(); 3]), nothing());
}

#[test]
fn greater_fence_matters_without_an_opened_majority() {
    let superseded = || Ok(Opened::Superseded(fence(9)));
    let opened = || Ok(Opened::Open(nothing()));
    let found = open([superseded(), superseded(), opened(), opened(), opened()]);
    assert_eq!(found.unwrap(), Opened::Open(nothing()));
    let two_silent = [Err(silent()), Err(silent())];
    let found = open(
        [superseded(), opened(), opened()]
            .into_iter()
            .chain(two_silent),
    );
    assert_eq!(found.unwrap(), Opened::Superseded(fence(9)));
    let error = open([opened(), opened(), Err(silent())]).unwrap_err();
    let (kind, effect) = (error.kind(), error.effect());
    assert_eq!((kind, effect), (ErrorKind::NoQuorum, Effect::Unknown));
}

#[test]
fn majority_that_writes_decides() {
    let round = count(
        writing(),
        [wrote(), superseded(), wrote()],
        RecordAnswer::Written,
    );
    assert!(!round.is_decided());
    let decided = write([wrote(), superseded(), wrote(), superseded(), wrote()]);
    assert_eq!(decided.unwrap(), WriteOutcome::Written);
}

#[test]
fn write_is_superseded_if_no_member_has_it() {
    let three = || [superseded(), superseded(), superseded()].into_iter();
    let none = three().chain([Err(refused()), superseded()]);
    assert_eq!(write(none).unwrap(), WriteOutcome::Superseded(fence(9)));
    for maybe in [wrote(), Err(silent())] {
        let one = three().chain([maybe, superseded()]);
        let error = write(one).unwrap_err();
        let (kind, effect) = (error.kind(), error.effect());
        assert_eq!((kind, effect), (ErrorKind::Fenced, Effect::Unknown));
    }
}

#[test]
fn write_without_a_majority_may_have_taken_effect() {
    let few = write([superseded(), superseded(), wrote(), Err(silent())]).unwrap_err();
    let (kind, effect) = (few.kind(), few.effect());
    assert_eq!((kind, effect), (ErrorKind::NoQuorum, Effect::Unknown));
    let unasked = write([Err(refused()), Err(refused()), Err(refused())]);
    let error = unasked.unwrap_err();
    let (kind, effect) = (error.kind(), error.effect());
    assert_eq!((kind, effect), (ErrorKind::Unsupported, Effect::None));
}

#[test]
fn reading_waits_for_a_majority_of_one_value() {
    let mut round = reading();
    for value in [has(7, 1, 30), nothing(), has(7, 1, 30), has(6, 1, 30)] {
        round.count(RecordAnswer::Read(value));
        assert!(!round.is_decided());
    }
    round.count(RecordAnswer::Read(has(7, 1, 30)));
    assert!(round.is_decided() && round.read().unwrap().settled);
    let answers = [Ok(nothing()), Ok(nothing()), Ok(nothing())];
    assert!(count(reading(), answers, RecordAnswer::Read).is_decided());
    let few = count(
        reading(),
        [Ok(has(7, 1, 30)), Err(silent())],
        RecordAnswer::Read,
    );
    assert_eq!(few.read().unwrap_err().kind(), ErrorKind::NoQuorum);
}
