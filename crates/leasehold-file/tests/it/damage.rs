use std::fs;

use leasehold::{ErrorKind, Mode};

use crate::helper::Helper;
use crate::store_fixture::{StoreFixture, key, permit};

const SLOTS: [usize; 2] = [0, 512];

#[tokio::test]
async fn a_torn_slot_falls_back_to_the_other() {
    for torn in SLOTS {
        let fixture = StoreFixture::new();
        fixture.pass("deploy", 1000).await;
        let last = fixture.pass("deploy", 0).await;
        let path = fixture.lock_file("deploy");
        let mut bytes = fs::read(&path).unwrap();
        bytes[torn + 20..torn + 56].fill(0xaa);
        fs::write(&path, &bytes).unwrap();
        // What was torn is the greater counter or the smaller; the one left counts on.
        let next = if torn == SLOTS[1] { last } else { last + 1 };
        assert_eq!(fixture.pass("deploy", 0).await, next);
        assert_eq!(fixture.pass("deploy", 0).await, next + 1);
    }
}

#[tokio::test]
async fn untrusted_file_is_named_and_kept() {
    let fixture = StoreFixture::new();
    fixture.pass("deploy", 1000).await;
    fixture.pass("deploy", 0).await;
    let path = fixture.lock_file("deploy");
    let good = fs::read(&path).unwrap();
    let mut both_torn = good.clone();
    for slot in SLOTS {
        both_torn[slot + 30] ^= 1;
    }
    fixture.pass("other", 5).await;
    let of_another_key = fs::read(fixture.lock_file("other")).unwrap();
    let foreign = b"#!/bin/sh\necho not a lock\n".to_vec();
    let shifted = good[..100].repeat(30)[1..].to_vec();
    for bytes in [both_torn, of_another_key, foreign, shifted] {
        fs::write(&path, &bytes).unwrap();
        for mode in [Mode::Exclusive, Mode::Shared, permit(3)] {
            let error = fixture.refused(&fixture.wants(mode)).await;
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert_eq!(error.key(), Some(&key("deploy")));
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains("remove the file"), "{text}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert!(fixture.holders().await.is_empty());
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(fixture.pass("deploy", 0).await, 1003);
}

#[tokio::test]
async fn folder_or_link_as_lock_file_is_refused() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    fs::create_dir(&path).unwrap();
    assert_eq!(
        fixture.refused(&fixture.writer()).await.kind(),
        ErrorKind::Io
    );
    fs::remove_dir(&path).unwrap();
    let target = fixture.dir.path().join("target");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let text = fixture.refused(&fixture.writer()).await.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(!target.exists());
}

/// A limit on the size of files simulates a full disk: the write fails in the same place.
#[tokio::test]
async fn unwritable_fence_is_not_granted() {
    let fixture = StoreFixture::new();
    let limited = &["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""];
    assert_eq!(fixture.pass("used", 999).await, 1000);
    for (name, before) in [("new", 0), ("used", 1000)] {
        let mut helper = Helper::start_under(limited);
        for _ in 0..2 {
            let answer = helper.try_take(fixture.dir.path(), name, Mode::Exclusive);
            assert!(answer.starts_with("error Io"), "{answer}");
            assert!(answer.contains("could not write the fence"), "{answer}");
        }
        // The process still lives; nothing is held by it, and the counter is where it was.
        assert_eq!(fixture.pass(name, 0).await, before + 1);
    }
}

/// A file system that is really full.
#[test]
fn full_disk_error_names_the_file() {
    let fixture = StoreFixture::new();
    let dir = fixture.dir.path().to_str().unwrap();
    let mut helper = Helper::start_after_mount(&format!(
        "mount -t tmpfs -o size=64k none {dir} && mkdir -m 700 {dir}/locks && \
         ! cat /dev/zero > {dir}/fill 2> /dev/null"
    ));
    let locks = fixture.dir.path().join("locks");
    for _ in 0..2 {
        let answer = helper.try_take(&locks, "deploy", Mode::Exclusive);
        assert!(answer.starts_with("error Io"), "{answer}");
        assert!(answer.contains("No space left on device"), "{answer}");
        assert!(answer.contains(locks.to_str().unwrap()), "{answer}");
    }
}
