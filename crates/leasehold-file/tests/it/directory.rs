use std::fs;
use std::os::unix::fs::PermissionsExt;

use leasehold::store::{Exclusion, Expiry, FairnessOrder, LeaseTerms, Sharing, Store, Waiting};
use leasehold::{ErrorKind, Mode};
use leasehold_file::FileStore;

use crate::helper::Helper;
use crate::world::World;

/// Without the capabilities that let root pass by the permissions of files.
const WITHOUT_CAPABILITIES: &[&str] = &["setpriv", "--inh-caps=-all", "--bounding-set=-all"];

fn unprivileged() -> Helper {
    if nix::unistd::geteuid().is_root() {
        Helper::start_under(WITHOUT_CAPABILITIES)
    } else {
        Helper::start()
    }
}

#[test]
fn unusable_directory_is_refused_by_name() {
    let world = World::new();
    let locks = world.dir.path().join("locks");
    fs::create_dir(&locks).unwrap();
    let mut helper = unprivileged();
    for mode in [0o500, 0o300, 0o000] {
        fs::set_permissions(&locks, fs::Permissions::from_mode(mode)).unwrap();
        for dir in [&locks, &locks.join("below")] {
            if mode == 0o300 && *dir != locks {
                continue;
            }
            let answer = helper.try_take(dir, "deploy", Mode::Exclusive);
            assert!(answer.starts_with("error Refused"), "{mode:o}: {answer}");
            assert!(answer.contains(locks.to_str().unwrap()), "{answer}");
            assert!(answer.contains("Permission denied"), "{answer}");
        }
    }
    fs::set_permissions(&locks, fs::Permissions::from_mode(0o700)).unwrap();
    let answer = helper.try_take(&locks, "deploy", Mode::Exclusive);
    assert!(answer.starts_with("granted"), "{answer}");
}

#[test]
fn unwritable_lock_file_is_refused_by_name() {
    let world = World::new();
    let path = world.lock_file("deploy");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let answer = unprivileged().try_take(world.dir.path(), "deploy", Mode::Exclusive);
    assert!(answer.starts_with("error Refused"), "{answer}");
    assert!(answer.contains(path.to_str().unwrap()), "{answer}");
}

#[test]
fn read_only_file_system_is_refused() {
    let world = World::new();
    let dir = world.dir.path().to_str().unwrap();
    let script = format!("mount -t tmpfs -o ro none {dir} && exec \"$0\" \"$@\"");
    let root = nix::unistd::geteuid().is_root();
    let unshare: &[&str] = if root {
        &["unshare", "-m"]
    } else {
        &["unshare", "-r", "-m"]
    };
    let wrapper: Vec<_> = unshare
        .iter()
        .copied()
        .chain(["sh", "-c", &script])
        .collect();
    let mut helper = Helper::start_under(&wrapper);
    for dir in [world.dir.path(), &world.dir.path().join("below")] {
        let answer = helper.try_take(dir, "deploy", Mode::Exclusive);
        assert!(answer.starts_with("error Refused"), "{answer}");
        assert!(answer.contains("Read-only file system"), "{answer}");
        assert!(answer.contains(dir.to_str().unwrap()), "{answer}");
    }
}

#[test]
fn remote_file_system_is_refused_unless_overridden() {
    let error = FileStore::open("/proc").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("procfs"), "{error}");
    // The override lets it through to the next check: who may write there.
    match FileStore::options().unsafe_fs(true).open("/sys") {
        Ok(store) => assert_eq!(store.describe(), "file:/sys"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{error}"),
    }
}

#[tokio::test]
async fn removed_directory_is_recreated() {
    let world = World::new();
    let path = world.dir.path().join("locks");
    let store = FileStore::open(&path).unwrap();
    fs::remove_dir(&path).unwrap();
    let claim = world.claim("deploy", 0);
    crate::world::fence(store.acquire(&claim).await);
    fs::remove_dir_all(&path).unwrap();
    let lost = store
        .renew(&[crate::world::held(&claim, leasehold::Fence::MAX)])
        .await;
    assert!(
        matches!(lost[..], [leasehold::store::Renewal::Lost(_)]),
        "{lost:?}"
    );
}

#[test]
fn the_store_says_what_it_is() {
    let world = World::new();
    let guarantees = world.store.guarantees();
    assert_eq!(guarantees.exclusion, Exclusion::Kernel);
    assert_eq!(guarantees.expiry, Expiry::WithProcess);
    assert_eq!(guarantees.waiting, Waiting::Notified);
    assert_eq!(guarantees.order, FairnessOrder::Unordered);
    assert_eq!(guarantees.sharing, Sharing::WritersPreferred);
    assert_eq!(world.store.terms(), LeaseTerms::single());
    let dir = world.dir.path().canonicalize().unwrap();
    assert_eq!(world.store.describe(), format!("file:{}", dir.display()));
    assert_eq!(world.lock_file("a/b"), dir.join("a%2Fb.lock"));
}
