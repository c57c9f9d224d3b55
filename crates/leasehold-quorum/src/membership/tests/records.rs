//! Records that outlive restarts: which members may accept a value, and which may report that there is none.

use leasehold_types::{
    Fence, Key, Opened, Reading, RecordKey, RecordWrite, Version, WriteOutcome, Written,
};

use super::fixture::Fixture;
use super::*;
use crate::{Operation, Outcome, RecordAction, RecordAnswer};

const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// What one member stores: the greatest version, and the value with its version.
#[derive(Clone, Default)]
pub(super) struct StoredRecord {
    seen: Option<Version>,
    value: Option<Version>,
}

impl StoredRecord {
    pub(super) fn answer(&mut self, action: &RecordAction) -> RecordAnswer {
        let seen = self.seen.map(|version| version.fence);
        match action {
            RecordAction::Open(fence) if seen > Some(*fence) => {
                RecordAnswer::Opened(Opened::Superseded(self.seen.unwrap().fence))
            }
            RecordAction::Open(fence) => {
                let version = Version {
                    fence: *fence,
                    step: 0,
                };
                self.seen = self.seen.max(Some(version));
                RecordAnswer::Opened(Opened::Open(self.reading()))
            }
            RecordAction::Write(write) if self.seen > Some(write.version) => {
                RecordAnswer::Written(WriteOutcome::Superseded(self.seen.unwrap().fence))
            }
            RecordAction::Write(write) => {
                (self.seen, self.value) = (Some(write.version), Some(write.version));
                RecordAnswer::Written(WriteOutcome::Written)
            }
            RecordAction::Read => RecordAnswer::Read(self.reading()),
        }
    }

    fn reading(&self) -> Reading {
        let written = |version| Written::new(version, *b"value", RETENTION);
        Reading::settled(self.value.map(written))
    }
}

/// A quorum of durable members that lost nothing for longer than the retention.
fn durable(members: usize) -> Fixture {
    let (mut quorum, _) = TestQuorum::new(members);
    for server in &mut quorum.servers {
        server.durable = true;
        server.run += 1;
        server.member_record.as_mut().unwrap().durable = true;
    }
    quorum.now += 2 * RETENTION;
    Fixture::of(quorum, members, true)
}

/// Makes a member lose its data, and waits until it has a vote again.
fn lose_data(fixture: &mut Fixture, member: usize) {
    fixture.restart_empty(member);
    fixture.records[member] = StoredRecord::default();
    fixture.pass(3 * WAIT);
}

fn run(fixture: &mut Fixture, action: RecordAction) -> Result<RecordAnswer, Error> {
    let mut record = RecordKey::new(Key::new("x").unwrap());
    record.lasting = Some(RETENTION);
    match fixture.run(Operation::Record(record, action), 5 * SECOND) {
        Some(Outcome::Record(answer)) => Ok(answer),
        Some(Outcome::Failed(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn open(fixture: &mut Fixture, fence: u64) -> Result<Opened, Error> {
    let open = RecordAction::Open(Fence::new(fence).unwrap());
    match run(fixture, open)? {
        RecordAnswer::Opened(opened) => Ok(opened),
        other => panic!("{other:?}"),
    }
}

fn write(fixture: &mut Fixture, fence: u64) -> Result<WriteOutcome, Error> {
    let version = Version {
        fence: Fence::new(fence).unwrap(),
        step: 1,
    };
    let write = RecordWrite::new(version, *b"value", RETENTION).unwrap();
    match run(fixture, RecordAction::Write(write))? {
        RecordAnswer::Written(wrote) => Ok(wrote),
        other => panic!("{other:?}"),
    }
}

fn read(fixture: &mut Fixture) -> Result<Reading, Error> {
    match run(fixture, RecordAction::Read)? {
        RecordAnswer::Read(reading) => Ok(reading),
        other => panic!("{other:?}"),
    }
}

#[test]
fn young_member_has_no_vote_on_records() {
    let mut fixture = durable(3);
    fixture.disconnect(2);
    assert!(matches!(open(&mut fixture, 7), Ok(Opened::Open(_))));
    assert_eq!(write(&mut fixture, 7).unwrap(), WriteOutcome::Written);
    fixture.connect(2);
    lose_data(&mut fixture, 1);
    // Two of three have nothing, and one of the two may have had a value.
    fixture.disconnect(0);
    let error = read(&mut fixture).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert!(error.to_string().contains("m1: "), "{error}");
    let error = open(&mut fixture, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let error = write(&mut fixture, 9).unwrap_err();
    assert_eq!(error.effect(), leasehold_types::Effect::Unknown);
    fixture.connect(0);
    let found = read(&mut fixture).unwrap().written.unwrap();
    assert_eq!(found.version.fence, Fence::new(9).unwrap());
}

#[test]
fn member_has_a_vote_again_after_the_retention() {
    let mut fixture = durable(3);
    lose_data(&mut fixture, 1);
    fixture.disconnect(2);
    let error = read(&mut fixture).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert!(error.eligible_after().is_some());
    fixture.pass(RETENTION);
    assert_eq!(read(&mut fixture).unwrap(), Reading::settled(None));
}

#[test]
fn value_of_a_majority_is_read_from_forgetful_members() {
    let mut fixture = durable(3);
    for member in [0, 1] {
        lose_data(&mut fixture, member);
    }
    let version = Version {
        fence: Fence::new(7).unwrap(),
        step: 1,
    };
    let value = Some(version);
    let seen = Some(version);
    fixture.records[0] = StoredRecord { seen, value };
    fixture.disconnect(2);
    // One member has a value, and the other one may have lost it.
    assert_eq!(read(&mut fixture).unwrap_err().kind(), ErrorKind::NoQuorum);
    fixture.records[1] = StoredRecord { seen, value };
    assert!(read(&mut fixture).unwrap().settled);
    let error = open(&mut fixture, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
}

#[test]
fn lasting_record_needs_durable_members() {
    let (quorum, _) = TestQuorum::new(3);
    let mut fixture = Fixture::of(quorum, 3, true);
    let error = open(&mut fixture, 7).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(!fixture.got.iter().flatten().any(|it| *it == "a record's"));
}

#[test]
fn member_without_a_vote_is_not_counted() {
    let mut fixture = durable(3);
    fixture.restart_empty(1);
    fixture.disconnect(2);
    let error = read(&mut fixture).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
}
