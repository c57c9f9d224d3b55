use std::time::{Duration, Instant};

use leasehold::look::Pattern;
use leasehold::store::{Opened, RecordKey, RecordWrite, Records, Version, WriteOutcome, Written};
use leasehold::{Effect, Fence, Key};

use crate::contract::fixture::{
    Fixture, LONG, OpenStore, TIMEOUT, busy, granted, inspection, now, released, until,
};

/// What a test writes must be there until its end.
const KEPT: Duration = LONG;

fn records(store: &OpenStore) -> &dyn Records {
    store.records().expect("a store that keeps records")
}

fn fence(number: u64) -> Fence {
    Fence::new(number).expect("a fence")
}

async fn opened(store: &OpenStore, key: &Key, number: u64) -> Opened {
    let record = RecordKey::new(key.clone());
    let opened = records(store).open_record(&record, fence(number)).await;
    opened.expect("an answer")
}

/// Checks that a write has no visible effect. If there are several members, some may have heard of
/// `greatest` late. Then the writer learns only that the effect is unknown.
async fn shut_out(
    fixture: &Fixture,
    store: &OpenStore,
    key: &Key,
    (number, step): (u64, u32),
    greatest: u64,
) {
    let record = RecordKey::new(key.clone());
    let write = RecordWrite::new(version(number, step), *b"late", KEPT).expect("a valid write");
    match records(store).write_record(&record, &write).await {
        Ok(recorded) => assert_eq!(recorded, WriteOutcome::Superseded(fence(greatest))),
        Err(error) => {
            assert_eq!(error.effect(), Effect::Unknown, "{error}");
            assert!(fixture.harness.locations().len() > 1, "{error}");
        }
    }
}

/// Opens the record, which must succeed, and returns its value.
async fn found(store: &OpenStore, key: &Key, number: u64) -> Option<(Version, Vec<u8>)> {
    match opened(store, key, number).await {
        Opened::Open(reading) => reading.written.map(plain),
        Opened::Superseded(greatest) => panic!("{key}: {number} should get in, not {greatest}"),
    }
}

async fn wrote(
    store: &OpenStore,
    key: &Key,
    (number, step): (u64, u32),
    text: &str,
) -> WriteOutcome {
    wrote_for(store, key, version(number, step), text, KEPT).await
}

async fn wrote_for(
    store: &OpenStore,
    key: &Key,
    version: Version,
    text: &str,
    retention: Duration,
) -> WriteOutcome {
    let record = RecordKey::new(key.clone());
    let write = RecordWrite::new(version, text.as_bytes(), retention).expect("a valid write");
    let wrote = records(store).write_record(&record, &write).await;
    wrote.expect("an answer")
}

async fn read(store: &OpenStore, key: &Key) -> Option<(Version, Vec<u8>)> {
    let reading = records(store)
        .read_record(&RecordKey::new(key.clone()))
        .await;
    let reading = reading.expect("an answer");
    assert!(reading.settled, "{key}: {reading:?}");
    reading.written.map(plain)
}

fn plain(written: Written) -> (Version, Vec<u8>) {
    assert!(written.remaining <= KEPT, "{:?}", written.remaining);
    (written.version, written.bytes.to_vec())
}

fn version(number: u64, step: u32) -> Version {
    Version {
        fence: fence(number),
        step,
    }
}

fn value(number: u64, step: u32, text: &str) -> Option<(Version, Vec<u8>)> {
    Some((version(number, step), text.as_bytes().to_vec()))
}

pub(crate) async fn p1_what_was_written_last_is_shown(fixture: &Fixture) {
    let (one, other) = (fixture.open(), fixture.open());
    let (key, next) = (fixture.key(), fixture.key());
    assert_eq!(read(&one, &key).await, None);
    assert_eq!(found(&one, &key, 7).await, None);
    assert_eq!(
        wrote(&one, &key, (7, 1), "one").await,
        WriteOutcome::Written
    );
    assert_eq!(read(&other, &key).await, value(7, 1, "one"));
    // Writes without opening the record first, and with a fence that no clock would give.
    let (most, text) = (Fence::MAX.get(), "two \0\r\n\u{fffd}");
    assert_eq!(
        wrote(&other, &key, (most, 3), text).await,
        WriteOutcome::Written
    );
    assert_eq!(read(&one, &key).await, value(most, 3, text));
    assert_eq!(found(&one, &key, most).await, value(most, 3, text));
    assert_eq!(read(&one, &next).await, None, "another key");
    assert_eq!(wrote(&one, &next, (1, 1), "").await, WriteOutcome::Written);
    assert_eq!(read(&other, &next).await, value(1, 1, ""));
}

pub(crate) async fn p1_a_long_value_is_shown_whole(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let text = "0123456789abcdef".repeat(RecordWrite::BYTES_MAX / 16);
    assert_eq!(
        wrote(&store, &key, (7, 1), &text).await,
        WriteOutcome::Written
    );
    assert_eq!(read(&store, &key).await, value(7, 1, &text));
    assert_eq!(found(&store, &key, 8).await, value(7, 1, &text));
}

pub(crate) async fn p2_a_smaller_fence_is_shut_out(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    // Fences of that size cannot be closer: a store that rounds them takes the two for one.
    let (smaller, greater) = (Fence::MAX.get() - 1, Fence::MAX.get());
    assert_eq!(
        wrote(&store, &key, (smaller, 1), "kept").await,
        WriteOutcome::Written
    );
    assert_eq!(
        found(&other, &key, greater).await,
        value(smaller, 1, "kept")
    );
    let not_opened = Opened::Superseded(fence(greater));
    assert_eq!(opened(&store, &key, smaller).await, not_opened);
    assert_eq!(opened(&store, &key, 1).await, not_opened);
    for step in [1, 2, 9] {
        shut_out(fixture, &store, &key, (smaller, step), greater).await;
    }
    if fixture.harness.locations().len() == 1 {
        assert_eq!(read(&store, &key).await, value(smaller, 1, "kept"));
    }
    assert_eq!(
        wrote(&other, &key, (greater, 1), "new").await,
        WriteOutcome::Written
    );
    shut_out(fixture, &store, &key, (smaller, 10), greater).await;
    assert_eq!(read(&store, &key).await, value(greater, 1, "new"));
}

pub(crate) async fn p2_a_write_shuts_out_smaller_fences_too(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    assert_eq!(
        wrote(&store, &key, (9, 1), "nine").await,
        WriteOutcome::Written
    );
    assert_eq!(opened(&store, &key, 8).await, Opened::Superseded(fence(9)));
    shut_out(fixture, &store, &key, (8, 5), 9).await;
    assert_eq!(read(&store, &key).await, value(9, 1, "nine"));
}

pub(crate) async fn p3_the_same_fence_goes_on(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    assert_eq!(found(&store, &key, 7).await, None);
    assert_eq!(found(&store, &key, 7).await, None);
    for (step, text) in [(1, "begun"), (1, "begun"), (2, "going on"), (10, "done")] {
        assert_eq!(
            wrote(&store, &key, (7, step), text).await,
            WriteOutcome::Written
        );
        assert_eq!(read(&store, &key).await, value(7, step, text));
    }
    assert_eq!(found(&store, &key, 7).await, value(7, 10, "done"));
    // A network may repeat a message, and deliver it late.
    for step in [1, 2, 9] {
        shut_out(fixture, &store, &key, (7, step), 7).await;
    }
    assert_eq!(read(&store, &key).await, value(7, 10, "done"));
}

pub(crate) async fn p4_value_ends_with_its_retention(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let retention = Duration::from_millis(1500);
    let shut_out = Opened::Superseded(fence(7));
    // A majority decides each write. Only a refused opening waits for the answers of all members, so from then
    // on all have the fence and the value.
    wrote(&store, &key, (7, 1), "first").await;
    assert_eq!(opened(&store, &key, 6).await, shut_out);
    let began = now();
    let written = wrote_for(&store, &key, version(7, 2), "second", retention).await;
    assert_eq!(written, WriteOutcome::Written);
    assert_eq!(opened(&store, &key, 6).await, shut_out);
    let everywhere = now();
    until_gone(fixture, &store, &key, (began, retention)).await;
    // The last member may have begun the retention only now. Servers round to whole milliseconds.
    let last = retention + Duration::from_millis(100);
    until(fixture, "the last member", async || {
        everywhere.elapsed() > last
    })
    .await;
    assert_eq!(
        opened(&store, &key, 6).await,
        shut_out,
        "who was there is remembered"
    );
    assert_eq!(
        wrote(&store, &key, (6, 1), "late").await,
        WriteOutcome::Superseded(fence(7))
    );
    // Opening the record again with the same fence does not make an old step valid.
    assert_eq!(found(&store, &key, 7).await, None);
    assert_eq!(
        wrote(&store, &key, (7, 1), "late").await,
        WriteOutcome::Superseded(fence(7))
    );
    assert_eq!(found(&store, &key, 8).await, None);
}

/// Waits until a reader finds no value. Until the retention is over, all members have it.
async fn until_gone(
    fixture: &Fixture,
    store: &OpenStore,
    key: &Key,
    (began, retention): (Instant, Duration),
) {
    let record = RecordKey::new(key.clone());
    loop {
        // Measured before the store is asked, so this age is not too great.
        let before = began.elapsed();
        let reading = records(store).read_record(&record).await;
        let reading = reading.expect("an answer");
        let age = began.elapsed();
        if reading.written.is_none() || !reading.settled {
            assert!(age >= retention, "{reading:?} after {age:?}");
        }
        match reading.written {
            Some(written) => assert_eq!(Some(plain(written)), value(7, 2, "second")),
            None => return,
        }
        assert!(before < TIMEOUT, "still there after {before:?}");
        fixture.pause().await;
    }
}

pub(crate) async fn p4_each_write_begins_the_retention_anew(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    wrote_for(
        &store,
        &key,
        version(7, 1),
        "short",
        RecordWrite::RETENTION_MIN,
    )
    .await;
    let began = now();
    assert_eq!(
        wrote(&store, &key, (7, 2), "long").await,
        WriteOutcome::Written
    );
    while began.elapsed() < RecordWrite::RETENTION_MIN * 2 {
        assert_eq!(read(&store, &key).await, value(7, 2, "long"));
        fixture.pause().await;
    }
    let reading = records(&store).read_record(&RecordKey::new(key)).await;
    let remaining = reading
        .expect("an answer")
        .written
        .expect("a value")
        .remaining;
    // Servers round to whole milliseconds.
    let passed = began.elapsed() + Duration::from_millis(100);
    let least = KEPT.checked_sub(passed).expect("a fast machine");
    assert!(
        remaining >= least && remaining <= KEPT,
        "{remaining:?}, {least:?}"
    );
}

pub(crate) async fn p5_reading_changes_nothing(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    assert_eq!(found(&store, &key, 7).await, None);
    assert_eq!(read(&store, &key).await, None);
    assert_eq!(
        wrote(&store, &key, (7, 1), "seven").await,
        WriteOutcome::Written
    );
    assert_eq!(read(&store, &key).await, value(7, 1, "seven"));
    assert_eq!(
        wrote(&store, &key, (7, 2), "again").await,
        WriteOutcome::Written
    );
    assert_eq!(read(&store, &key).await, value(7, 2, "again"));
}

pub(crate) async fn p6_a_record_is_no_lock(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    assert_eq!(
        wrote(&store, &key, (1, 1), "before").await,
        WriteOutcome::Written
    );
    assert!(
        inspection(&store)
            .holders(&key)
            .await
            .expect("an answer")
            .is_empty()
    );
    let listed = async || {
        let pattern = Pattern::new(key.as_str()).expect("a pattern");
        let listing = inspection(&store).list_locks(&pattern, 9).await;
        let locks = listing.expect("an answer").locks.into_iter();
        locks.map(|lock| lock.key).collect::<Vec<_>>()
    };
    assert!(listed().await.is_empty());
    let request = fixture.request(&key, LONG);
    let mine = granted(&store, &request).await;
    assert_eq!(read(&store, &key).await, value(1, 1, "before"));
    assert_eq!(
        wrote(&store, &key, (mine.get(), 1), "held").await,
        WriteOutcome::Written
    );
    busy(&store, &fixture.request(&key, LONG)).await;
    let holders = inspection(&store).holders(&key).await.expect("an answer");
    assert_eq!(holders.len(), 1, "{holders:?}");
    assert_eq!(listed().await, std::slice::from_ref(&key));
    released(&store, &request).await;
    assert_eq!(read(&store, &key).await, value(mine.get(), 1, "held"));
    let next = fixture.request(&key, LONG);
    assert!(
        granted(&store, &next).await > mine,
        "its counter is as it was"
    );
    released(&store, &next).await;
}

pub(crate) async fn p7_listing_names_the_records_that_match(fixture: &Fixture) {
    let (store, start) = (fixture.open(), fixture.key());
    let listed = async |end: &str, limit: usize| {
        let pattern = Pattern::new(format!("{start}{end}")).expect("a pattern");
        let keys = records(&store).list_records(&pattern, limit).await;
        let keys = keys.expect("an answer").into_iter();
        keys.map(|key| key.as_str()[start.as_str().len()..].to_owned())
            .collect::<Vec<_>>()
    };
    assert!(listed("*", 9).await.is_empty());
    let names = ["/a[2]", "/b", "/b}:{c}:d", "/b/c %41", "/ü"];
    for name in names {
        let key = Key::new(format!("{start}{name}")).expect("a key");
        assert_eq!(
            wrote(&store, &key, (1, 1), name).await,
            WriteOutcome::Written
        );
    }
    // A lock without a record.
    let lock = Key::new(format!("{start}/lock")).expect("a key");
    let request = fixture.request(&lock, LONG);
    granted(&store, &request).await;
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(listed("/*", 9).await, sorted);
    assert_eq!(listed("/*", 2).await, sorted[..2]);
    assert_eq!(listed("/b?c*", 9).await, ["/b/c %41"]);
    assert_eq!(listed("/a[2]", 9).await, ["/a[2]"]);
    assert!(listed("/none*", 9).await.is_empty());
    let key = Key::new(format!("{start}/b")).expect("a key");
    assert_eq!(
        wrote(&store, &key, (1, 2), "again").await,
        WriteOutcome::Written,
        "listing changes nothing"
    );
    released(&store, &request).await;
}
