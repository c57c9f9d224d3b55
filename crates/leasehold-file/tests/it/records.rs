use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime};
use leasehold::env::Env;
use leasehold::store::{
    BoxFuture, Inspection as _, Opened, Reading, RecordKey, RecordWrite, Records as _, Version,
    WriteOutcome,
};
use leasehold::{Error, ErrorKind, Fence};
use leasehold_file::FileStore;

use crate::world::{World, key};

const KEPT: Duration = Duration::from_secs(60);

async fn write(store: &FileStore, fence: u64, text: &str) -> Result<WriteOutcome, Error> {
    let fence = Fence::new(fence).unwrap();
    let version = Version { fence, step: 1 };
    let write = RecordWrite::new(version, text.as_bytes(), KEPT).unwrap();
    let record = RecordKey::new(key("deploy"));
    store.write_record(&record, &write).await
}

async fn read(store: &FileStore) -> Result<Reading, Error> {
    store.read_record(&RecordKey::new(key("deploy"))).await
}

fn text(reading: Reading) -> Option<String> {
    let bytes = reading.written?.bytes;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn record_file(world: &World) -> std::path::PathBuf {
    let mut path = world.lock_file("deploy").into_os_string();
    path.push(".record");
    path.into()
}

#[tokio::test]
async fn record_file_is_no_lock() {
    let world = World::new();
    assert_eq!(text(read(&world.store).await.unwrap()), None);
    assert_eq!(
        fs::read_dir(world.dir.path()).unwrap().count(),
        0,
        "looking makes nothing"
    );
    write(&world.store, 7, "value").await.unwrap();
    let path = record_file(&world);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(world.store.list("", 9).await.unwrap().is_empty());
    world.pass("deploy", 1000).await;
    let names = fs::read_dir(world.dir.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["deploy.lock", "deploy.lock.record"]);
    let other = world.another_store();
    assert_eq!(text(read(&other).await.unwrap()).as_deref(), Some("value"));
}

#[tokio::test]
async fn leftovers_of_a_killed_writer_are_harmless() {
    let world = World::new();
    write(&world.store, 7, "whole").await.unwrap();
    let mut left = record_file(&world).into_os_string();
    left.push(".new");
    fs::write(&left, b"LHrecord, but only the begin").unwrap();
    assert_eq!(
        text(read(&world.store).await.unwrap()).as_deref(),
        Some("whole")
    );
    write(&world.store, 8, "next").await.unwrap();
    assert_eq!(
        text(read(&world.store).await.unwrap()).as_deref(),
        Some("next")
    );
    assert!(!fs::exists(&left).unwrap());
    // Killed after it had made the file, and before it wrote.
    fs::write(record_file(&world), b"").unwrap();
    assert_eq!(text(read(&world.store).await.unwrap()), None);
    assert_eq!(
        write(&world.store, 9, "again").await.unwrap(),
        WriteOutcome::Written
    );
}

/// Overwriting another user's file in a sticky directory, interrupted at each byte.
#[tokio::test]
async fn an_interrupted_overwrite_is_finished() {
    let world = World::new();
    let path = record_file(&world);
    let mut new = path.clone().into_os_string();
    new.push(".new");
    let written = async |fence, text| {
        write(&world.store, fence, text).await.unwrap();
        fs::read(&path).unwrap()
    };
    let (long, short) = ("a result of some length", "result");
    let files = [written(7, long).await, written(8, short).await];
    let [longer, shorter] = &files;
    for (old, whole, before, after) in [
        (longer, shorter, long, short),
        (shorter, longer, short, long),
    ] {
        for cut in 0..=whole.len() {
            let mut torn = whole[..cut].to_vec();
            torn.extend(old.iter().skip(cut));
            fs::write(&path, &torn).unwrap();
            fs::write(&new, whole).unwrap();
            let seen = text(read(&world.store).await.unwrap());
            let expected = if torn == *old { before } else { after };
            assert_eq!(seen.as_deref(), Some(expected), "interrupted at {cut}");
            // Before the old file was touched, the new one was written.
            fs::write(&path, old).unwrap();
            fs::write(&new, &whole[..cut]).unwrap();
            let seen = text(read(&world.store).await.unwrap());
            assert_eq!(seen.as_deref(), Some(before), "interrupted at {cut}");
        }
    }
}

#[tokio::test]
async fn an_interrupted_overwrite_is_repaired_first() {
    let world = World::new();
    write(&world.store, 8, "result").await.unwrap();
    let path = record_file(&world);
    let mut new = path.clone().into_os_string();
    new.push(".new");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..60]).unwrap();
    fs::write(&new, &whole).unwrap();
    // The only whole copy is not overwritten.
    let late = write(&world.store, 7, "late").await.unwrap();
    assert_eq!(late, WriteOutcome::Superseded(Fence::new(8).unwrap()));
    assert_eq!(fs::read(&path).unwrap(), whole);
    // A user that cannot remove the new file leaves it empty.
    fs::write(&path, &whole[..60]).unwrap();
    fs::write(&new, b"").unwrap();
    let error = read(&world.store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn damaged_record_is_named_and_kept() {
    let world = World::new();
    write(&world.store, 7, "value").await.unwrap();
    let path = record_file(&world);
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    flipped[60] ^= 1;
    let cut = good[..good.len() - 1].to_vec();
    for bytes in [flipped, cut, b"#!/bin/sh\n".to_vec()] {
        fs::write(&path, &bytes).unwrap();
        let record = RecordKey::new(key("deploy"));
        let opening = world.store.open_record(&record, Fence::MAX);
        for error in [
            read(&world.store).await.unwrap_err(),
            write(&world.store, 8, "next").await.unwrap_err(),
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
    fs::write(&path, good).unwrap();
    assert_eq!(
        text(read(&world.store).await.unwrap()).as_deref(),
        Some("value")
    );
}

#[tokio::test]
async fn failed_write_keeps_the_record() {
    let world = World::new();
    write(&world.store, 7, "value").await.unwrap();
    // A folder is in the way of the new file, and cannot be removed as a file.
    let mut new = record_file(&world).into_os_string();
    new.push(".new");
    fs::create_dir(&new).unwrap();
    let error = write(&world.store, 8, "next").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(error.effect(), leasehold::Effect::None);
    fs::remove_dir(&new).unwrap();
    assert_eq!(
        text(read(&world.store).await.unwrap()).as_deref(),
        Some("value")
    );
    assert_eq!(
        write(&world.store, 8, "next").await.unwrap(),
        WriteOutcome::Written
    );
}

/// A wall clock that can be set.
#[derive(Debug, Default)]
struct Settable {
    /// By how many seconds it is ahead.
    ahead: AtomicU64,
}

impl Clock for Settable {
    fn now(&self) -> BootInstant {
        SystemClock.now()
    }

    fn wall(&self) -> WallTime {
        let ahead = self.ahead.load(SeqCst) * 1_000_000;
        WallTime::from_micros(SystemClock.wall().as_micros() + ahead)
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        SystemClock.sleep_until(deadline)
    }

    fn stood_still(&self, span: Duration) {
        SystemClock.stood_still(span);
    }
}

#[tokio::test]
async fn expired_records_are_removed_gradually() {
    let world = World::new();
    let clock = Arc::new(Settable::default());
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..Env::default()
    };
    let store = FileStore::options().env(env);
    let store = store.open(world.dir.path()).unwrap();
    write(&store, 7, "value").await.unwrap();
    let old = record_file(&world);
    clock.ahead.store(59, SeqCst);
    assert!(text(read(&store).await.unwrap()).is_some());
    clock.ahead.store(61, SeqCst);
    assert_eq!(text(read(&store).await.unwrap()), None);
    let late = write(&store, 6, "late").await.unwrap();
    assert_eq!(late, WriteOutcome::Superseded(Fence::new(7).unwrap()));

    let others = async || {
        let version = Version {
            fence: Fence::new(1).unwrap(),
            step: 1,
        };
        let bytes = b"other".as_slice();
        let write = RecordWrite::new(version, bytes, KEPT).unwrap();
        let record = RecordKey::new(key("other"));
        store.write_record(&record, &write).await.unwrap();
    };
    for _ in 0..100 {
        others().await;
    }
    assert!(fs::exists(&old).unwrap(), "who was there is remembered");
    clock.ahead.store(8 * 86_400, SeqCst);
    let being_read = fs::File::open(&old).unwrap();
    being_read.lock_shared().unwrap();
    let new_lock = world.lock_file("new");
    fs::write(&new_lock, b"").unwrap();
    for _ in 0..100 {
        others().await;
    }
    assert!(fs::exists(&old).unwrap(), "somebody is at it");
    assert!(fs::exists(&new_lock).unwrap(), "it is no record");
    drop(being_read);
    let mut writes = 0;
    while fs::exists(&old).unwrap() {
        others().await;
        writes += 1;
        assert!(writes < 1000, "still there");
    }
    assert!(fs::exists(world.dir.path().join("other.lock.record")).unwrap());
    assert_eq!(
        write(&store, 1, "anew").await.unwrap(),
        WriteOutcome::Written
    );
}

/// Writers take turns, each in a thread of its own. The greatest fence wins, and each reader sees a
/// whole value, with a fence that never decreases.
#[test]
fn writers_and_readers_at_once_see_whole_values() {
    let world = World::new();
    let longest = "x".repeat(50_000);
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let (store, longest) = (world.another_store(), &longest);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = { runtime }.enable_all().build().unwrap();
                runtime.block_on(async {
                    let mut last = 0;
                    for round in 0..25 {
                        let fence = round * 4 + writer + 1;
                        let wrote = write(&store, fence, &format!("{fence} {longest}")).await;
                        match wrote.unwrap() {
                            WriteOutcome::Written => {}
                            WriteOutcome::Superseded(greatest) => assert!(greatest.get() > fence),
                        }
                        let seen = text(read(&store).await.unwrap()).expect("a value");
                        let (seen, rest) = seen.split_once(' ').unwrap();
                        assert_eq!(rest, longest);
                        let seen: u64 = seen.parse().unwrap();
                        assert!(
                            seen >= fence && seen >= last,
                            "{seen} after {last}, {fence}"
                        );
                        last = seen;
                    }
                });
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let seen = runtime.block_on(read(&world.store)).unwrap();
    assert_eq!(seen.written.unwrap().version.fence.get(), 100);
}

#[tokio::test]
async fn opening_is_remembered_across_processes() {
    let world = World::new();
    let record = RecordKey::new(key("deploy"));
    let fence = Fence::new(9).unwrap();
    world.store.open_record(&record, fence).await.unwrap();
    let later = world.another_store();
    let opened = later.open_record(&record, Fence::new(8).unwrap()).await;
    assert_eq!(opened.unwrap(), Opened::Superseded(fence));
}
