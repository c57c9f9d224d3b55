//! Records: opened, written and read at a majority.

use leasehold_types::{Opened, Reading, RecordKey, RecordWrite, Version, WriteOutcome, Written};

use super::*;

fn record() -> RecordKey {
    RecordKey::new(Key::new("lock").unwrap())
}

fn version() -> Version {
    Version {
        fence: fence(7),
        step: 1,
    }
}

fn open(fixture: &mut Fixture) -> OperationId {
    let open = RecordAction::Open(fence(7));
    fixture.start(Operation::Record(record(), open))
}

fn write(fixture: &mut Fixture) -> OperationId {
    let write = RecordWrite::new(version(), *b"value", TTL).unwrap();
    fixture.start(Operation::Record(record(), RecordAction::Write(write)))
}

fn read(fixture: &mut Fixture) -> OperationId {
    fixture.start(Operation::Record(record(), RecordAction::Read))
}

fn value() -> Reading {
    Reading::settled(Some(Written::new(version(), *b"value", TTL)))
}

fn opened() -> Reply {
    Reply::Record(RecordAnswer::Opened(Opened::Open(Reading::settled(None))))
}

fn wrote() -> Reply {
    Reply::Record(RecordAnswer::Written(WriteOutcome::Written))
}

fn has(reading: Reading) -> Reply {
    Reply::Record(RecordAnswer::Read(reading))
}

fn answer(fixture: &mut Fixture, id: OperationId) -> Option<RecordAnswer> {
    match fixture.outcome(id)? {
        Outcome::Record(answer) => Some(answer),
        other => panic!("{other:?}"),
    }
}

fn failed(fixture: &mut Fixture, id: OperationId) -> Error {
    match fixture.outcome(id) {
        Some(Outcome::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn majority_decides_before_the_others_answer() {
    let mut fixture = Fixture::new(3);
    let id = open(&mut fixture);
    fixture.reply(0, opened());
    assert!(answer(&mut fixture, id).is_none());
    fixture.reply(2, opened());
    let nothing = Opened::Open(Reading::settled(None));
    assert_eq!(
        answer(&mut fixture, id),
        Some(RecordAnswer::Opened(nothing))
    );
    let id = write(&mut fixture);
    // A late reply to the opening finds no operation.
    fixture.reply(1, opened());
    fixture.reply_all(&[0, 1], &wrote());
    let written = RecordAnswer::Written(WriteOutcome::Written);
    assert_eq!(answer(&mut fixture, id), Some(written));
    let id = read(&mut fixture);
    fixture.reply_all(&[0, 1], &has(value()));
    assert_eq!(answer(&mut fixture, id), Some(RecordAnswer::Read(value())));
}

#[test]
fn minority_of_answers_is_no_quorum() {
    let mut fixture = Fixture::new(3);
    let id = write(&mut fixture);
    fixture.reply(0, wrote());
    fixture.disconnect(1);
    fixture.disconnect(2);
    let error = failed(&mut fixture, id);
    let (kind, effect) = (error.kind(), error.effect());
    assert_eq!((kind, effect), (ErrorKind::NoQuorum, Effect::Unknown));
    // The read does not wait for members that are known to be gone.
    let id = read(&mut fixture);
    fixture.reply(0, has(value()));
    assert_eq!(failed(&mut fixture, id).kind(), ErrorKind::NoQuorum);
}

#[test]
fn disconnect_midway_leaves_the_others_deciding() {
    let mut fixture = Fixture::new(3);
    let id = write(&mut fixture);
    fixture.disconnect(1);
    fixture.reply(0, wrote());
    assert!(answer(&mut fixture, id).is_none());
    fixture.reply(2, wrote());
    assert!(answer(&mut fixture, id).is_some());
    fixture.connect(1);
    assert!(
        !fixture.kinds(1).contains(&"a record's"),
        "it is not asked again"
    );
}

#[test]
fn silent_members_end_the_operation_in_time() {
    let mut fixture = Fixture::new(3);
    fixture.mute = vec![true; 3];
    let id = read(&mut fixture);
    fixture.pass(1_900);
    assert!(fixture.outcome(id).is_none());
    fixture.pass(200);
    assert_eq!(failed(&mut fixture, id).kind(), ErrorKind::NoQuorum);
    assert_eq!(fixture.kinds(0), ["a record's", "status"]);
    // The reply arrives late, and is harmless.
    fixture.reply(0, has(value()));
    assert!(fixture.outcome(id).is_none());
}

#[test]
fn record_operation_waits_for_the_first_connections() {
    let mut fixture = Fixture::disconnected(3);
    let id = open(&mut fixture);
    fixture.pass(500);
    fixture.connect(0);
    fixture.connect(1);
    fixture.reply_all(&[0, 1], &opened());
    assert!(answer(&mut fixture, id).is_some());
    let id = read(&mut fixture);
    assert_eq!(fixture.kinds(2), [""; 0]);
    fixture.reply(0, has(value()));
    fixture.pass(2_000);
    assert_eq!(failed(&mut fixture, id).kind(), ErrorKind::NoQuorum);
}

#[test]
fn cancelled_record_operation_is_forgotten() {
    let mut fixture = Fixture::disconnected(3);
    let id = write(&mut fixture);
    fixture.connect(0);
    fixture.cancel(id);
    fixture.connect(1);
    assert_eq!(fixture.kinds(1), [""; 0]);
    fixture.reply(0, wrote());
    fixture.pass(10_000);
    assert!(fixture.outcome(id).is_none());
}

#[test]
fn single_server_keeps_lasting_records_as_it_is() {
    let mut fixture = Fixture::new(1);
    let mut lasting = record();
    lasting.lasting = Some(TTL);
    let id = fixture.start(Operation::Record(lasting, RecordAction::Read));
    fixture.reply(0, has(value()));
    assert_eq!(answer(&mut fixture, id), Some(RecordAnswer::Read(value())));
}

#[test]
fn unsuitable_reply_is_a_failure() {
    let mut fixture = Fixture::new(1);
    let id = read(&mut fixture);
    fixture.reply(0, granted(7));
    assert_eq!(failed(&mut fixture, id).kind(), ErrorKind::InvalidResponse);
}
