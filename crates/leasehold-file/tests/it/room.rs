//! Attempts that found room for themselves before others took it.

use std::fs::File;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::Mode;
use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime, within};
use leasehold::env::Env;
use leasehold::store::{AcquireError, BoxFuture, Grant, LockRequest};
use leasehold_file::FileStore;
use leasehold_testkit::servers::until;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::flock::flock_gets;
use crate::store_fixture::{OpenStore, StoreFixture, permit};

/// On this clock every pause of an attempt lasts until it is let go, the first one first.
#[derive(Clone, Debug)]
struct HeldClock {
    pauses: Arc<AtomicUsize>,
    let_go: Arc<Semaphore>,
}

impl Clock for HeldClock {
    fn now(&self) -> BootInstant {
        SystemClock.now()
    }

    fn wall(&self) -> WallTime {
        SystemClock.wall()
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        if deadline.since(self.now()) > Duration::from_millis(30) {
            return SystemClock.sleep_until(deadline);
        }
        let Self { pauses, let_go } = self.clone();
        Box::pin(async move {
            let mut go = pin!(let_go.acquire());
            let mut is_counted = false;
            let gone = poll_fn(|context| {
                let gone = go.as_mut().poll(context);
                // Once it is in the queue.
                if !std::mem::replace(&mut is_counted, true) {
                    pauses.fetch_add(1, Ordering::SeqCst);
                }
                gone
            });
            gone.await.unwrap().forget();
        })
    }

    fn was_paused(&self, _: Duration) {}
}

impl HeldClock {
    fn closed() -> Self {
        Self {
            pauses: Arc::default(),
            let_go: Arc::new(Semaphore::new(0)),
        }
    }

    fn store(&self, dir: &Path) -> OpenStore {
        let env = Env {
            clock: Arc::new(self.clone()),
            ..Env::default()
        };
        OpenStore::of(FileStore::open(dir).unwrap(), env)
    }

    fn until_paused(&self, times: usize) {
        until("a pause", || self.pauses.load(Ordering::SeqCst) >= times);
    }
}

/// A holder that shares the lock, and is stopped with these bytes of its file locked.
struct Stopped(File);

impl Stopped {
    fn on(fixture: &StoreFixture) -> Self {
        let mut options = File::options();
        let file = options.read(true).write(true);
        Self(file.open(fixture.lock_file("deploy")).unwrap())
    }

    fn lock(&self, kind: i32, byte: u64) {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: byte as libc::off_t,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(&self.0, FcntlArg::F_OFD_SETLK(&range)).unwrap();
    }
}

/// As the documentation of the crate says.
const COUNTER: u64 = 0;
const KIND_OF_READERS: u64 = 2048 + 1024 * 1024;
const WAITING_WRITERS: u64 = KIND_OF_READERS + 129;

fn in_background(
    store: &OpenStore,
    request: LockRequest,
) -> JoinHandle<Result<Grant, AcquireError>> {
    let store = store.clone();
    tokio::spawn(async move { store.acquire(&request).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_kinds_gets_in() {
    let pairs = [
        [Mode::Shared, permit(3)],
        [permit(3), Mode::Shared],
        [permit(2), permit(3)],
    ];
    for modes in pairs {
        let fixture = StoreFixture::new();
        fixture.pass("deploy", 0).await;
        let stopped = Stopped::on(&fixture);
        stopped.lock(libc::F_WRLCK, COUNTER);
        let gate = HeldClock::closed();
        let store = gate.store(fixture.dir.path());
        let mut attempts = Vec::new();
        for mode in modes {
            attempts.push(in_background(&store, fixture.wants(mode)));
            gate.until_paused(attempts.len());
        }
        stopped.lock(libc::F_UNLCK, COUNTER);
        // They go on in the order in which they came.
        let mut granted = 0;
        for attempt in attempts {
            gate.let_go.add_permits(1);
            granted += usize::from(attempt.await.unwrap().is_ok());
            gate.let_go.add_permits(1);
        }
        assert_eq!(granted, 1, "{modes:?}");
    }
}

/// Its `flock` may have kept out a writer that was notified of the last close before.
#[tokio::test(flavor = "multi_thread")]
async fn attempt_retries_when_its_room_was_taken() {
    for is_left in [true, false] {
        let fixture = StoreFixture::new();
        let path = fixture.lock_file("deploy");
        fixture.pass("deploy", 0).await;
        let stopped = Stopped::on(&fixture);
        stopped.lock(libc::F_WRLCK, COUNTER);
        let gate = HeldClock::closed();
        let store = gate.store(fixture.dir.path());
        let attempt = in_background(&store, fixture.wants(permit(3)));
        gate.until_paused(1);
        assert!(!flock_gets(&path, "-x"));
        stopped.lock(libc::F_RDLCK, KIND_OF_READERS);
        // It waits for the one that it found there, and may wait for no other.
        stopped.lock(libc::F_RDLCK, WAITING_WRITERS);
        stopped.lock(libc::F_UNLCK, COUNTER);
        gate.let_go.add_permits(1);
        gate.until_paused(2);
        assert!(flock_gets(&path, "-x"), "it is in the way meanwhile");
        if is_left {
            stopped.lock(libc::F_UNLCK, KIND_OF_READERS);
        }
        gate.let_go.add_permits(1);
        assert_eq!(attempt.await.unwrap().is_ok(), is_left);
    }
}

/// A shared holder that was stopped while it drew its fence does not hold up the attempt's thread:
/// the attempt can be dropped, and leaves nothing.
#[tokio::test]
async fn wait_for_another_readers_fence_is_cancellable() {
    let fixture = StoreFixture::new();
    fixture.pass("deploy", 0).await;
    let stopped = Stopped::on(&fixture);
    stopped.lock(libc::F_WRLCK, COUNTER);
    let reader = fixture.reader();
    let soon = SystemClock.now() + Duration::from_millis(100);
    let attempt = within(&SystemClock, soon, fixture.store.acquire(&reader)).await;
    assert!(attempt.is_none());
    fixture.store.release(&reader).await.unwrap();
    assert!(fixture.holders().await.is_empty());
    drop(stopped);
    fixture.granted(&reader).await;
}
