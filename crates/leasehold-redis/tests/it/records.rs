//! Records as a server keeps them.

use std::time::Duration;

use leasehold::store::{Opened, RecordKey, RecordWrite, Records, Session, Version, WriteOutcome};
use leasehold::{Error, ErrorKind, Fence};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{eventually, key, left, session, session_at};

const RECORD: &str = "leasehold:record:{deploy}:deploy";
const VERSION: &str = "leasehold:version:{deploy}:deploy";
const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;

fn record() -> RecordKey {
    RecordKey::new(key("deploy"))
}

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn records(session: &dyn Session) -> &dyn Records {
    session.records().expect("records")
}

async fn write(session: &dyn Session, number: u64, bytes: &[u8]) -> WriteOutcome {
    let version = Version {
        fence: fence(number),
        step: 1,
    };
    let write = RecordWrite::new(version, bytes, Duration::from_secs(60)).unwrap();
    let written = records(session).write_record(&record(), &write).await;
    written.unwrap()
}

async fn open(session: &dyn Session, number: u64) -> Opened {
    let opened = records(session).open_record(&record(), fence(number)).await;
    opened.unwrap()
}

async fn read(session: &dyn Session) -> Result<Option<Vec<u8>>, Error> {
    let reading = records(session).read_record(&record()).await?;
    Ok(reading.written.map(|written| written.bytes.to_vec()))
}

#[tokio::test]
async fn both_keys_of_a_record_expire() {
    let server = RedisServer::start();
    let session = session(&server);
    assert_eq!(read(&*session).await.unwrap(), None);
    let keys = server.command(&["EXISTS", RECORD, VERSION]);
    assert_eq!(keys, Reply::Integer(0), "reading changes nothing");
    assert_eq!(write(&*session, 7, b"value").await, WriteOutcome::Written);
    let value = left(&server, RECORD);
    assert!((1..=60_000).contains(&value), "{value}");
    let version = left(&server, VERSION);
    assert!((WEEK_MS - 60_000..=WEEK_MS).contains(&version), "{version}");
    server.command(&["PEXPIRE", VERSION, "60000"]);
    open(&*session, 7).await;
    assert!(left(&server, VERSION) > 60_000, "opening begins it anew");
}

#[tokio::test]
async fn value_may_hold_any_bytes() {
    let server = RedisServer::start();
    let session = session(&server);
    let bytes: Vec<u8> = (0..=255).cycle().take(RecordWrite::BYTES_MAX).collect();
    assert_eq!(write(&*session, 7, &bytes).await, WriteOutcome::Written);
    assert_eq!(read(&*session).await.unwrap(), Some(bytes));
}

#[tokio::test]
async fn durable_server_keeps_records_across_a_restart() {
    let mut server = RedisServer::builder().durable().start();
    let session = session(&server);
    assert_eq!(write(&*session, 7, b"value").await, WriteOutcome::Written);
    open(&*session, 9).await;
    server.restart();
    let found = eventually("the server answers", async || read(&*session).await.ok()).await;
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
    assert_eq!(
        write(&*session, 8, b"late").await,
        WriteOutcome::Superseded(fence(9))
    );
    let Opened::Open(reading) = open(&*session, 9).await else {
        panic!("superseded")
    };
    assert!(reading.written.is_some());
}

#[tokio::test]
async fn value_or_stamp_keeps_smaller_fences_out() {
    for lost in [RECORD, VERSION] {
        let server = RedisServer::start();
        let session = session(&server);
        assert_eq!(write(&*session, 7, b"value").await, WriteOutcome::Written);
        // Either may outlive the other.
        server.command(&["DEL", lost]);
        assert_eq!(read(&*session).await.unwrap().is_some(), lost == VERSION);
        let late = write(&*session, 6, b"late").await;
        assert_eq!(late, WriteOutcome::Superseded(fence(7)), "{lost}");
        assert_eq!(open(&*session, 6).await, Opened::Superseded(fence(7)));
        let opened = open(&*session, 7).await;
        assert!(matches!(opened, Opened::Open(_)), "{opened:?}");
        assert_eq!(write(&*session, 8, b"next").await, WriteOutcome::Written);
    }
}

#[tokio::test]
async fn damaged_record_names_the_remedy() {
    let server = RedisServer::start();
    let session = session(&server);
    for (damage, said) in [
        (&["SET", RECORD, "x"][..], "delete it"),
        (
            &["HSET", RECORD, "version", "7.x", "value", "y"],
            "delete it",
        ),
        (
            &["HSET", RECORD, "version", "7.1", "value", "y"],
            "has no end",
        ),
    ] {
        server.command(&["DEL", RECORD]);
        server.command(damage);
        let error = read(&*session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn user_without_rights_is_told() {
    let rights = "on >secret ~* +info +evalsha +script|load +time";
    let server = RedisServer::builder().acl("locks", rights).start();
    let url = server.url().replace("redis://", "redis://locks:secret@");
    let error = read(&*session_at(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains("locks") && !text.contains("secret"), "{text}");
}
