use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::Clock;
use leasehold::env::Env;
use leasehold::store::{Reading, RecordKey, RecordWrite, Version, WriteOutcome};
use leasehold::{Error, ErrorKind, Fence};
use leasehold_file::FileStore;
use leasehold_testkit::ShiftedClock;

use crate::store_fixture::{OpenStore, StoreFixture, block_on, key};

const KEPT: Duration = Duration::from_secs(60);

async fn write(store: &OpenStore, fence: u64, text: &str) -> Result<WriteOutcome, Error> {
    let fence = Fence::new(fence).unwrap();
    let version = Version { fence, step: 1 };
    let write = RecordWrite::new(version, text.as_bytes(), KEPT).unwrap();
    let record = RecordKey::new(key("deploy"));
    store.records().unwrap().write_record(&record, &write).await
}

async fn wrote(store: &OpenStore, fence: u64, text: &str) {
    let outcome = write(store, fence, text).await.unwrap();
    assert_eq!(outcome, WriteOutcome::Written);
}

async fn read(store: &OpenStore) -> Result<Reading, Error> {
    store
        .records()
        .unwrap()
        .read_record(&RecordKey::new(key("deploy")))
        .await
}

async fn text(store: &OpenStore) -> Option<String> {
    let bytes = read(store).await.unwrap().written?.bytes;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

async fn shows(store: &OpenStore, expected: &str) {
    assert_eq!(text(store).await.as_deref(), Some(expected));
}

/// Opens a place with the record "value" in it, and also returns its file.
async fn with_record(text: &str) -> (StoreFixture, PathBuf) {
    let fixture = StoreFixture::new();
    wrote(&fixture.store, 7, text).await;
    let path = fixture.dir.path().join("deploy.lock.record");
    (fixture, path)
}

/// The file in which a writer prepares the next content.
fn new_file(path: &Path) -> PathBuf {
    path.with_extension("record.new")
}

#[tokio::test]
async fn record_file_is_no_lock() {
    let fixture = StoreFixture::new();
    assert_eq!(text(&fixture.store).await, None);
    let names = || {
        let names = fs::read_dir(fixture.dir.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert!(names().is_empty(), "looking makes nothing");
    wrote(&fixture.store, 7, "value").await;
    fixture.pass("deploy", 1000).await;
    assert_eq!(names(), ["deploy.lock", "deploy.lock.record"]);
    let path = fixture.dir.path().join("deploy.lock.record");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    shows(&fixture.another_store(), "value").await;
}

#[tokio::test]
async fn leftovers_of_a_killed_writer_are_harmless() {
    let (fixture, path) = with_record("whole").await;
    let new = new_file(&path);
    fs::write(&new, b"LHrecord, but only the begin").unwrap();
    shows(&fixture.store, "whole").await;
    wrote(&fixture.store, 8, "next").await;
    shows(&fixture.store, "next").await;
    assert!(!fs::exists(&new).unwrap());
    // Killed after it had made the file, and before it wrote.
    fs::write(&path, b"").unwrap();
    assert_eq!(text(&fixture.store).await, None);
    wrote(&fixture.store, 9, "again").await;
}

/// Overwriting another user's file in a sticky directory, interrupted at each byte.
#[tokio::test]
async fn an_interrupted_overwrite_is_finished() {
    let (long, short) = ("a result of some length", "result");
    let (fixture, path) = with_record(long).await;
    let new = new_file(&path);
    let longer = fs::read(&path).unwrap();
    wrote(&fixture.store, 8, short).await;
    let shorter = fs::read(&path).unwrap();
    for (old, whole, before, after) in [
        (&longer, &shorter, long, short),
        (&shorter, &longer, short, long),
    ] {
        for cut in 0..=whole.len() {
            let mut torn = whole[..cut].to_vec();
            torn.extend(old.iter().skip(cut));
            fs::write(&path, &torn).unwrap();
            fs::write(&new, whole).unwrap();
            let is_old = torn == *old;
            shows(&fixture.store, if is_old { before } else { after }).await;
            // Before the old file was touched, the new one was written.
            fs::write(&path, old).unwrap();
            fs::write(&new, &whole[..cut]).unwrap();
            shows(&fixture.store, before).await;
        }
    }
}

#[tokio::test]
async fn an_interrupted_overwrite_is_repaired_first() {
    let (fixture, path) = with_record("result").await;
    let new = new_file(&path);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..60]).unwrap();
    fs::write(&new, &whole).unwrap();
    // The only whole copy is not overwritten.
    let late = write(&fixture.store, 6, "late").await.unwrap();
    assert_eq!(late, WriteOutcome::Superseded(Fence::new(7).unwrap()));
    assert_eq!(fs::read(&path).unwrap(), whole);
    // A user that cannot remove the new file leaves it empty.
    fs::write(&path, &whole[..60]).unwrap();
    fs::write(&new, b"").unwrap();
    let error = read(&fixture.store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn damaged_record_is_named_and_kept() {
    let (fixture, path) = with_record("value").await;
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    flipped[60] ^= 1;
    let cut = good[..good.len() - 1].to_vec();
    for bytes in [flipped, cut, b"#!/bin/sh\n".to_vec()] {
        fs::write(&path, &bytes).unwrap();
        let record = RecordKey::new(key("deploy"));
        let opening = fixture
            .store
            .records()
            .unwrap()
            .open_record(&record, Fence::MAX);
        for error in [
            read(&fixture.store).await.unwrap_err(),
            write(&fixture.store, 8, "next").await.unwrap_err(),
            opening.await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert_eq!(error.key(), Some(&key("deploy")));
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains("or remove it"), "{text}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[tokio::test]
async fn failed_write_keeps_the_record() {
    let (fixture, path) = with_record("value").await;
    // A folder is in the way of the new file, and cannot be removed as a file.
    fs::create_dir(new_file(&path)).unwrap();
    let error = write(&fixture.store, 8, "next").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(error.effect(), leasehold::Effect::None);
    fs::remove_dir(new_file(&path)).unwrap();
    shows(&fixture.store, "value").await;
    wrote(&fixture.store, 8, "next").await;
}

#[tokio::test]
async fn expired_records_are_removed_gradually() {
    let fixture = StoreFixture::new();
    let clock = Arc::new(ShiftedClock::default());
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..Env::default()
    };
    let store = OpenStore::of(FileStore::open(fixture.dir.path()).unwrap(), env);
    wrote(&store, 7, "value").await;
    let old = fixture.dir.path().join("deploy.lock.record");
    clock.set(59_000_000);
    shows(&store, "value").await;
    clock.set(61_000_000);
    assert_eq!(text(&store).await, None);

    let write_other = async || {
        let fence = Fence::new(1).unwrap();
        let write = RecordWrite::new(Version { fence, step: 1 }, *b"other", KEPT).unwrap();
        let record = RecordKey::new(key("other"));
        store
            .records()
            .unwrap()
            .write_record(&record, &write)
            .await
            .unwrap();
    };
    for _ in 0..100 {
        write_other().await;
    }
    assert!(fs::exists(&old).unwrap(), "who was there is remembered");
    clock.set(8 * 86_400_000_000);
    let being_read = fs::File::open(&old).unwrap();
    being_read.lock_shared().unwrap();
    let new_lock = fixture.lock_file("new");
    fs::write(&new_lock, b"").unwrap();
    for _ in 0..100 {
        write_other().await;
    }
    assert!(fs::exists(&old).unwrap(), "somebody is at it");
    assert!(fs::exists(&new_lock).unwrap(), "it is no record");
    drop(being_read);
    let mut writes = 0;
    while fs::exists(&old).unwrap() {
        write_other().await;
        writes += 1;
        assert!(writes < 1000, "still there");
    }
    assert!(fs::exists(fixture.dir.path().join("other.lock.record")).unwrap());
    wrote(&store, 1, "anew").await;
}

/// Writers take turns, each in a thread of its own. The greatest fence wins, and each reader sees a
/// whole value, with a fence that never decreases.
#[test]
fn writers_and_readers_at_once_see_whole_values() {
    let fixture = StoreFixture::new();
    let longest = "x".repeat(50_000);
    let takes_part = async |writer: u64| {
        let (store, mut last) = (fixture.another_store(), 0);
        for round in 0..25 {
            let fence = round * 4 + writer + 1;
            match write(&store, fence, &format!("{fence} {longest}"))
                .await
                .unwrap()
            {
                WriteOutcome::Written => {}
                WriteOutcome::Superseded(greatest) => assert!(greatest.get() > fence),
            }
            let seen = text(&store).await.expect("a value");
            let (seen, rest) = seen.split_once(' ').unwrap();
            assert_eq!(rest, longest);
            let seen: u64 = seen.parse().unwrap();
            assert!(
                seen >= fence && seen >= last,
                "{seen} after {last}, {fence}"
            );
            last = seen;
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let takes_part = &takes_part;
            scope.spawn(move || block_on(takes_part(writer)));
        }
    });
    let seen = block_on(read(&fixture.store)).unwrap();
    assert_eq!(seen.written.unwrap().version.fence.get(), 100);
}
