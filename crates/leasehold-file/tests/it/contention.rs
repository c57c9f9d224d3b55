use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use leasehold::Mode;
use leasehold::store::{Attempt, Inspection as _, Renewal, Store};
use leasehold_file::FileStore;

use crate::helper::Helper;
use crate::world::{self, World, held, key, wall};

/// Several processes add to a plain file under the lock; none of it gets lost, and the fences of
/// all of them are distinct and, within each, ascending.
#[test]
fn processes_take_turns() {
    const PROCESSES: u32 = 4;
    const TURNS: u32 = 50;
    let world = World::new();
    let number = world.dir.path().join("number");
    fs::write(&number, "0").unwrap();
    let turns = TURNS.to_string();
    let (dir, file) = (world.dir.path().to_str().unwrap(), number.to_str().unwrap());
    let order = ["increment", dir, "deploy", file, &turns];
    let mut all = Vec::new();
    for fences in Helper::ask_several(PROCESSES, &order) {
        let fences: Vec<u64> = fences.split(' ').map(|it| it.parse().unwrap()).collect();
        assert!(fences.is_sorted_by(|before, after| before < after));
        all.extend(fences);
    }
    all.sort_unstable();
    assert_eq!(all, (1..=u64::from(PROCESSES * TURNS)).collect::<Vec<_>>());
    assert_eq!(fs::read_to_string(&number).unwrap(), "200");
}

/// While a thread keeps removing the lock file, no two holders with valid locks are ever there
/// together, and fences stay in order.
#[test]
fn removed_file_never_causes_two_holders() {
    let world = World::new();
    let path = world.lock_file("deploy");
    let over = Arc::new(AtomicBool::new(false));
    let remover = {
        let (over, path) = (over.clone(), path.clone());
        std::thread::spawn(move || {
            let mut removed = 0_u32;
            while !over.load(Ordering::Relaxed) {
                // Remove the file only while the lock is free, with the lock on it held.
                let Ok(file) = fs::File::open(&path) else {
                    continue;
                };
                if file.try_lock().is_ok() && fs::remove_file(&path).is_ok() {
                    removed += 1;
                }
            }
            removed
        })
    };
    let inside = Arc::new(AtomicU32::new(0));
    let contenders: Vec<_> = (0..3)
        .map(|_| {
            let (dir, inside) = (world.dir.path().to_owned(), inside.clone());
            std::thread::spawn(move || contend(&dir, &inside))
        })
        .collect();
    for contender in contenders {
        contender.join().unwrap();
    }
    over.store(true, Ordering::Relaxed);
    assert!(remover.join().unwrap() > 0, "the file was never removed");
}

fn contend(dir: &std::path::Path, inside: &AtomicU32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = FileStore::open(dir).unwrap();
    let client = world::client();
    let mut granted = 0;
    let mut last = 0;
    while granted < 100 {
        let claim = world::claim(&client, "deploy", wall());
        let attempt = runtime.block_on(store.acquire(&claim)).unwrap();
        let Attempt::Granted(grant) = attempt else {
            continue;
        };
        granted += 1;
        assert_eq!(
            inside.fetch_add(1, Ordering::SeqCst),
            0,
            "two holders at once"
        );
        assert!(grant.fence.get() > last);
        last = grant.fence.get();
        let renewed = runtime.block_on(store.renew(&[held(&claim, grant.fence)]));
        assert!(matches!(renewed[..], [Renewal::Renewed]), "{renewed:?}");
        inside.fetch_sub(1, Ordering::SeqCst);
        runtime.block_on(store.release(&claim)).unwrap();
    }
}

/// A shared holder that was stopped while it drew its fence does not hold up the attempt's thread:
/// the attempt can be dropped, and leaves nothing.
#[tokio::test]
async fn wait_for_another_readers_fence_is_cancellable() {
    let world = World::new();
    world.pass("deploy", 0).await;
    let stopped = fs::File::options()
        .read(true)
        .write(true)
        .open(world.lock_file("deploy"))
        .unwrap();
    let counter = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&stopped, nix::fcntl::FcntlArg::F_OFD_SETLK(&counter)).unwrap();
    let reader = world.shared("deploy", 0);
    let clock = leasehold::env::Env::default().clock;
    let soon = clock.now() + std::time::Duration::from_millis(100);
    let attempt = world.store.acquire(&reader);
    assert!(
        leasehold::clock::within(&*clock, soon, attempt)
            .await
            .is_none()
    );
    world.store.release(&reader).await.unwrap();
    assert!(
        world
            .store
            .holders(&key("deploy"))
            .await
            .unwrap()
            .is_empty()
    );
    drop(stopped);
    let reader = reader.with_mode(Mode::Shared);
    world::fence(world.store.acquire(&reader).await);
}
