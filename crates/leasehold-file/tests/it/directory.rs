use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use leasehold::store::{Exclusion, Expiry, LeaseTerms, Order, RenewReply, Store};
use leasehold::{ErrorKind, Fence, Mode};
use leasehold_file::FileStore;

use crate::helper::Helper;
use crate::store_fixture::{OpenStore, StoreFixture, granted, held};

/// A helper without the capabilities that let root pass by the permissions of files.
fn unprivileged() -> Helper {
    if nix::unistd::geteuid().is_root() {
        Helper::start_under(&["setpriv", "--inh-caps=-all", "--bounding-set=-all"])
    } else {
        Helper::start()
    }
}

/// Checks that the directory is refused with an error that names `path` and `reason`.
fn is_refused(helper: &mut Helper, dir: &Path, path: &Path, reason: &str) {
    let answer = helper.try_take(dir, "deploy", Mode::Exclusive);
    assert!(answer.starts_with("error Refused"), "{answer}");
    assert!(answer.contains(path.to_str().unwrap()), "{answer}");
    assert!(answer.contains(reason), "{answer}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn unusable_directory_is_refused_by_name() {
    let fixture = StoreFixture::new();
    let locks = fixture.dir.path().join("locks");
    fs::create_dir(&locks).unwrap();
    let mut helper = unprivileged();
    for mode in [0o500, 0o300, 0o000] {
        set_mode(&locks, mode);
        is_refused(&mut helper, &locks, &locks, "Permission denied");
        if mode != 0o300 {
            is_refused(
                &mut helper,
                &locks.join("below"),
                &locks,
                "Permission denied",
            );
        }
    }
    set_mode(&locks, 0o700);
    let answer = helper.try_take(&locks, "deploy", Mode::Exclusive);
    assert!(answer.starts_with("granted"), "{answer}");
}

#[test]
fn unwritable_lock_file_is_refused_by_name() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    fs::write(&path, "").unwrap();
    set_mode(&path, 0o400);
    is_refused(&mut unprivileged(), fixture.dir.path(), &path, "");
}

#[tokio::test]
async fn unreadable_lock_file_hides_no_other() {
    let fixture = StoreFixture::new();
    fixture.take("deploy", 0).await;
    fixture.take("hidden", 0).await;
    let path = fixture.lock_file("hidden");
    set_mode(&path, 0o000);
    let listed = unprivileged().ask(&["list", fixture.dir.path().to_str().unwrap()]);
    let rest = listed
        .strip_prefix("deploy; ")
        .unwrap_or_else(|| panic!("{listed}"));
    assert!(rest.contains(path.to_str().unwrap()), "{listed}");
    assert!(rest.contains("Permission denied"), "{listed}");
}

#[test]
fn read_only_file_system_is_refused() {
    let fixture = StoreFixture::new();
    let dir = fixture.dir.path();
    let mut helper =
        Helper::start_after_mount(&format!("mount -t tmpfs -o ro none {}", dir.display()));
    for dir in [dir, &dir.join("below")] {
        is_refused(&mut helper, dir, dir, "Read-only file system");
    }
}

#[test]
fn remote_file_system_is_refused_unless_overridden() {
    let error = FileStore::open("/proc").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("procfs"), "{error}");
    // The override lets it through to the next check: who may write there.
    match FileStore::options().unsafe_fs(true).open("/sys") {
        Ok(store) => assert_eq!(store.to_string(), "file:/sys"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{error}"),
    }
}

#[tokio::test]
async fn removed_directory_is_recreated() {
    let fixture = StoreFixture::new();
    let path = fixture.dir.path().join("locks");
    let store = OpenStore::at(&path);
    fs::remove_dir(&path).unwrap();
    let request = fixture.writer();
    granted(&store, &request).await;
    fs::remove_dir_all(&path).unwrap();
    let lost = store.renew(&[held(&request, Fence::MAX)]).await;
    assert!(matches!(lost[..], [RenewReply::Lost(_)]), "{lost:?}");
}

#[test]
fn the_store_says_what_it_is() {
    let fixture = StoreFixture::new();
    let guarantees = fixture.store.files.guarantees();
    assert_eq!(guarantees.exclusion, Exclusion::Kernel);
    assert_eq!(guarantees.expiry, Expiry::WithProcess);
    assert_eq!(guarantees.order, Order::Unordered);
    assert!(guarantees.shared);
    assert_eq!(fixture.store.files.terms(), LeaseTerms::single());
    let dir = fixture.dir.path().canonicalize().unwrap();
    assert_eq!(
        fixture.store.files.to_string(),
        format!("file:{}", dir.display())
    );
    assert_eq!(fixture.lock_file("a/b"), dir.join("a%2Fb.lock"));
}
