//! Records as they lie at the server.

use std::time::Duration;

use leasehold::{
    Error, ErrorKind, Fence, Opened, Reading, RecordKey, RecordWrite, Recorded, Records as _,
    Stamp, Wrote,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{eventually, key, member};

fn record() -> RecordKey {
    RecordKey::new(key("deploy"))
}

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

async fn write(store: &RedisMember, number: u64, text: &str) -> Wrote {
    let stamp = Stamp {
        fence: fence(number),
        step: 1,
    };
    let write = RecordWrite::new(stamp, text.as_bytes(), Duration::from_secs(60)).unwrap();
    store.write_record(&record(), &write).await.unwrap().answer
}

async fn read(store: &RedisMember) -> Result<Recorded<Reading>, Error> {
    store.read_record(&record()).await
}

fn ttl(server: &RedisServer, key: &str) -> i64 {
    match server.command(&["PTTL", key]) {
        Reply::Integer(ttl) => ttl,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_record_is_two_keys_and_neither_is_immortal() {
    let server = RedisServer::start();
    let store = member(&server);
    assert_eq!(write(&store, 7, "value").await, Wrote::Written);
    let week = 7 * 24 * 60 * 60 * 1000;
    let value = ttl(&server, "leasehold:record:{deploy}:deploy");
    assert!((1..=60_000).contains(&value), "{value}");
    let stamp = ttl(&server, "leasehold:stamp:{deploy}:deploy");
    assert!((week - 60_000..=week).contains(&stamp), "{stamp}");
    server.command(&["PEXPIRE", "leasehold:stamp:{deploy}:deploy", "60000"]);
    store.open_record(&record(), fence(7)).await.unwrap();
    let stamp = ttl(&server, "leasehold:stamp:{deploy}:deploy");
    assert!(stamp > 60_000, "opening again begins it anew: {stamp}");
    let answer = read(&store).await.unwrap();
    assert!(answer.sample.is_some(), "every answer shows its data");
}

#[tokio::test]
async fn a_durable_server_has_values_and_who_was_there_after_its_restart() {
    let mut server = RedisServer::builder().durable().start();
    let store = member(&server);
    assert_eq!(write(&store, 7, "value").await, Wrote::Written);
    store.open_record(&record(), fence(9)).await.unwrap();
    server.restart();
    let found = eventually("the server answers", async || read(&store).await.ok()).await;
    let written = found.answer.written.unwrap();
    assert_eq!(&*written.bytes, b"value");
    assert_eq!(write(&store, 8, "late").await, Wrote::Superseded(fence(9)));
    let opened = store.open_record(&record(), fence(9)).await.unwrap().answer;
    assert!(matches!(
        opened,
        Opened::Open(Reading {
            written: Some(_),
            ..
        })
    ));
}

#[tokio::test]
async fn a_value_keeps_out_smaller_stamps_after_who_was_here_is_forgotten() {
    let server = RedisServer::start();
    let store = member(&server);
    assert_eq!(write(&store, 7, "value").await, Wrote::Written);
    // As after a week, for a value that is kept longer.
    server.command(&["DEL", "leasehold:stamp:{deploy}:deploy"]);
    let shut_out = Wrote::Superseded(fence(7));
    assert_eq!(write(&store, 6, "late").await, shut_out);
    let opened = store.open_record(&record(), fence(6)).await.unwrap().answer;
    assert_eq!(opened, Opened::Superseded(fence(7)));
    let opened = store.open_record(&record(), fence(7)).await.unwrap().answer;
    assert!(matches!(opened, Opened::Open(_)), "{opened:?}");
    assert_eq!(
        ttl(&server, "leasehold:stamp:{deploy}:deploy") / 1_000_000,
        604
    );
    assert_eq!(write(&store, 8, "next").await, Wrote::Written);
}

#[tokio::test]
async fn what_somebody_else_put_there_is_an_error_that_names_the_remedy() {
    let server = RedisServer::start();
    let store = member(&server);
    server.command(&["SET", "leasehold:record:{deploy}:deploy", "x"]);
    let error = read(&store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("DEL is the remedy"), "{error}");
    server.command(&["DEL", "leasehold:record:{deploy}:deploy"]);
    server.command(&[
        "HSET",
        "leasehold:record:{deploy}:deploy",
        "stamp",
        "x",
        "value",
        "y",
    ]);
    server.command(&["PEXPIRE", "leasehold:record:{deploy}:deploy", "60000"]);
    let error = read(&store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[tokio::test]
async fn a_user_without_the_rights_is_told_which() {
    let server =
        RedisServer::builder().acl("locks", "on >secret ~* +info +evalsha +script|load +time");
    let server = server.start();
    let url = server.url().replace("redis://", "redis://locks:secret@");
    let store = RedisMember::new(url).unwrap();
    let error = read(&store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains("locks") && !text.contains("secret"), "{text}");
}
