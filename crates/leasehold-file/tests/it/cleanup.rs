//! Unused lock files.

use std::fs::File;
use std::time::{Duration, SystemTime};

use leasehold::ErrorKind;

use crate::store_fixture::{StoreFixture, wall};

const HOUR: Duration = Duration::from_secs(3600);

/// Makes the file of `name` look as if it was last used two hours ago.
fn age(fixture: &StoreFixture, name: &str) {
    let file = File::options()
        .write(true)
        .open(fixture.lock_file(name))
        .unwrap();
    let then = SystemTime::now() - 2 * HOUR;
    file.set_modified(then).unwrap();
}

#[tokio::test]
async fn unused_file_is_removed_and_fences_grow() {
    let fixture = StoreFixture::new();
    let two_hours_ago = wall() - 7_200_000_000;
    let before = fixture.pass("old", two_hours_ago).await;
    age(&fixture, "old");
    fixture.pass("young", two_hours_ago).await;

    let dry = fixture.store.files.remove_unused(HOUR, true).unwrap();
    assert_eq!((dry.removed, dry.kept), (1, 1));
    assert!(fixture.lock_file("old").exists());
    let done = fixture.store.files.remove_unused(HOUR, false).unwrap();
    assert_eq!(done, dry);
    assert!(!fixture.lock_file("old").exists());
    assert!(fixture.lock_file("young").exists());
    assert!(fixture.pass("old", wall()).await > before);
}

#[tokio::test]
async fn file_that_is_needed_stays() {
    let fixture = StoreFixture::new();
    let two_hours_ago = wall() - 7_200_000_000;
    let held = fixture.request("held", two_hours_ago);
    fixture.store.acquire(&held).await.unwrap();
    let shared = fixture
        .request("shared", two_hours_ago)
        .with_mode(leasehold::Mode::Shared);
    fixture.store.acquire(&shared).await.unwrap();
    // A clock was wrong once: the fences are ahead of the time.
    fixture.pass("ahead", wall() + 7_200_000_000).await;
    std::fs::write(fixture.lock_file("damaged"), "no lock file").unwrap();
    for name in ["held", "shared", "ahead", "damaged"] {
        age(&fixture, name);
    }
    let kept = fixture.store.files.remove_unused(HOUR, false).unwrap();
    assert_eq!((kept.removed, kept.kept), (0, 4));
    let error = fixture
        .store
        .files
        .remove_unused(HOUR / 2, false)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
