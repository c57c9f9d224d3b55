//! Records: values that are written by fence.

use std::time::Duration;

use leasehold::store::{Opened, RecordWrite, Version, WriteOutcome, Written};
use leasehold::{Error, ErrorKind, Fence, Key, Mode};
use leasehold_quorum::{RecordAction, RecordAnswer, Reply, Request};

use crate::fixture::{TestClient, server};

const RETENTION: Duration = Duration::from_secs(60);
const RECORD: &str = "leasehold:record:{deploy}:deploy";
const STAMP: &str = "leasehold:version:{deploy}:deploy";

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn ask(client: &mut TestClient, action: RecordAction) -> Result<RecordAnswer, Error> {
    let key = Key::new("deploy").unwrap();
    match client.ask(&Request::Record(key, action)) {
        Reply::Record(answer) => Ok(answer),
        Reply::Failed(error) => Err(error),
        other => panic!("a record is answered {other:?}"),
    }
}

/// Returns the value that an opening finds, or the greater fence that was there before.
fn open(client: &mut TestClient, number: u64) -> Result<Option<Written>, u64> {
    match ask(client, RecordAction::Open(fence(number))).unwrap() {
        RecordAnswer::Opened(Opened::Open(reading)) => Ok(reading.written),
        RecordAnswer::Opened(Opened::Superseded(fence)) => Err(fence.get()),
        other => panic!("an opening is answered {other:?}"),
    }
}

fn write(client: &mut TestClient, number: u64, step: u32, bytes: &[u8]) -> WriteOutcome {
    let version = Version {
        fence: fence(number),
        step,
    };
    let write = RecordWrite::new(version, bytes, RETENTION).unwrap();
    match ask(client, RecordAction::Write(write)).unwrap() {
        RecordAnswer::Written(wrote) => wrote,
        other => panic!("a write is answered {other:?}"),
    }
}

fn read(client: &mut TestClient) -> Result<Option<Written>, Error> {
    match ask(client, RecordAction::Read)? {
        RecordAnswer::Read(reading) => Ok(reading.written),
        other => panic!("a reading is answered {other:?}"),
    }
}

#[test]
fn greater_fence_shuts_out_smaller_ones() {
    let server = server();
    let mut client = TestClient::connect(&server);
    assert_eq!(open(&mut client, 5), Ok(None));
    assert_eq!(write(&mut client, 5, 1, b"one"), WriteOutcome::Written);
    let found = open(&mut client, 7).unwrap().unwrap();
    assert_eq!(
        (found.version.fence, &*found.bytes),
        (fence(5), &b"one"[..])
    );
    assert_eq!(open(&mut client, 6), Err(7));
    assert_eq!(
        write(&mut client, 6, 9, b"late"),
        WriteOutcome::Superseded(fence(7))
    );
    assert_eq!(write(&mut client, 7, 2, b"two"), WriteOutcome::Written);
    assert_eq!(
        write(&mut client, 7, 1, b"old"),
        WriteOutcome::Superseded(fence(7))
    );
    assert_eq!(&*read(&mut client).unwrap().unwrap().bytes, b"two");
}

#[test]
fn opening_again_keeps_the_step_of_a_write() {
    let server = server();
    let mut client = TestClient::connect(&server);
    open(&mut client, 7).unwrap();
    write(&mut client, 7, 3, b"three");
    assert_eq!(open(&mut client, 7).unwrap().unwrap().version.step, 3);
    assert_eq!(
        write(&mut client, 7, 2, b"two"),
        WriteOutcome::Superseded(fence(7))
    );
}

#[test]
fn value_may_hold_any_bytes() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let bytes: Vec<u8> = (0..=255).cycle().take(RecordWrite::BYTES_MAX).collect();
    assert_eq!(write(&mut client, 7, 1, &bytes), WriteOutcome::Written);
    assert_eq!(&*read(&mut client).unwrap().unwrap().bytes, &*bytes);
    write(&mut client, 7, 2, b"");
    assert_eq!(&*read(&mut client).unwrap().unwrap().bytes, b"");
}

#[test]
fn stamp_outlives_the_value() {
    let server = server();
    let mut client = TestClient::connect(&server);
    write(&mut client, 7, 1, b"one");
    let written = read(&mut client).unwrap().unwrap();
    assert!(written.remaining > RETENTION / 2 && written.remaining <= RETENTION);
    client.command(&["DEL", RECORD]);
    assert_eq!(read(&mut client).unwrap(), None);
    assert_eq!(open(&mut client, 6), Err(7));
    // The value may outlive the memory of versions.
    write(&mut client, 8, 1, b"two");
    client.command(&["DEL", STAMP]);
    assert_eq!(open(&mut client, 7), Err(8));
}

#[test]
fn reading_changes_nothing() {
    let server = server();
    let mut client = TestClient::connect(&server);
    assert_eq!(read(&mut client).unwrap(), None);
    let keys = client.command(&["EXISTS", RECORD, STAMP]);
    assert_eq!(keys.as_integer(), Some(0));
}

#[test]
fn record_and_lock_leave_each_other_alone() {
    let server = server();
    let mut client = TestClient::connect(&server);
    write(&mut client, 7, 1, b"one");
    let claim = client.hold(Mode::Exclusive);
    write(&mut client, 8, 1, b"two");
    assert_eq!(client.value(), Some(claim.owner.to_string()));
    assert!(client.release(&claim));
    assert_eq!(&*read(&mut client).unwrap().unwrap().bytes, b"two");
}

#[test]
fn damaged_record_is_named() {
    let server = server();
    let mut client = TestClient::connect(&server);
    client.command(&["SET", RECORD, "another type"]);
    let error = read(&mut client).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("leasehold:record:"), "{error}");
    client.command(&["DEL", RECORD]);
    client.command(&["HSET", RECORD, "stamp", "7.x", "value", "one"]);
    let error = read(&mut client).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    client.command(&["HSET", RECORD, "stamp", "7.1"]);
    let error = read(&mut client).unwrap_err();
    assert!(error.to_string().contains("has no end"), "{error}");
}
