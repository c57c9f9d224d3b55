//! Waiters, and the notifications of the kernel.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime, within};
use leasehold::env::Env;
use leasehold::store::{BoxFuture, LockRequest, Progress, Report};
use leasehold::{Client, Fence, Mode};
use leasehold_file::FileStore;
use leasehold_testkit::servers::until;
use tokio::task::JoinHandle;

use crate::flock::Flock;
use crate::helper::Helper;
use crate::ownership::poll_once;
use crate::store_fixture::{
    OpenStore, StoreFixture, TIMEOUT, granted, permit, queued, released, wall,
};

/// On this clock, a waiter without notifications waits indefinitely.
#[derive(Debug)]
struct NotificationsAlone;

impl Clock for NotificationsAlone {
    fn now(&self) -> BootInstant {
        SystemClock.now()
    }

    fn wall(&self) -> WallTime {
        SystemClock.wall()
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        if deadline.since(self.now()) > Duration::from_millis(500) {
            return Box::pin(std::future::pending());
        }
        SystemClock.sleep_until(deadline)
    }

    fn was_paused(&self, span: Duration) {
        SystemClock.was_paused(span);
    }
}

/// Opens a store whose waiters never try without a notification, beyond their first tries.
pub(crate) fn by_notifications_alone(dir: &Path) -> OpenStore {
    OpenStore::of(FileStore::open(dir).unwrap(), notifications_alone())
}

pub(crate) fn notifications_alone() -> Env {
    Env {
        clock: Arc::new(NotificationsAlone),
        ..Env::default()
    }
}

/// A waiter in the background.
pub(crate) struct Waiting {
    granted: JoinHandle<Fence>,
    reports: Arc<AtomicU32>,
}

impl Waiting {
    pub(crate) fn start(store: &OpenStore, request: &LockRequest) -> Self {
        let reports = Arc::new(AtomicU32::new(0));
        let (store, request, counted) = (store.clone(), request.clone(), reports.clone());
        let granted = tokio::spawn(async move {
            let count = |_: &Report| {
                counted.fetch_add(1, Ordering::SeqCst);
            };
            let progress = Progress::heard_by(&count);
            store.acquire_with(&request, &progress).await.unwrap().fence
        });
        Self { granted, reports }
    }

    /// Starts the first waiter of its kind, and returns once its first tries are over.
    pub(crate) fn start_until_quiet(store: &OpenStore, request: &LockRequest) -> Self {
        let before = store.long_sleeps();
        let waiting = Self::start(store, request);
        until("the first tries", || store.long_sleeps() > before);
        waiting
    }

    /// Starts another waiter of a kind that waits already, and returns once it waits.
    pub(crate) fn join(store: &OpenStore, request: &LockRequest) -> Self {
        let waiting = Self::start(store, request);
        until("a report", || waiting.reports() > 0);
        waiting
    }

    fn reports(&self) -> u32 {
        self.reports.load(Ordering::SeqCst)
    }

    pub(crate) async fn granted(self) -> Fence {
        let end = SystemClock.now() + TIMEOUT;
        let granted = within(&SystemClock, end, self.granted).await;
        granted.expect("a word").unwrap()
    }
}

/// Checks that `event` wakes a waiter, which then gets the lock. Returns its fence.
async fn wakes(store: &OpenStore, waiter: &LockRequest, event: impl AsyncFnOnce()) -> Fence {
    let waiting = Waiting::start_until_quiet(store, waiter);
    event().await;
    let fence = waiting.granted().await;
    released(store, waiter).await;
    fence
}

/// Returns how often this process has `path`, or what was there, open.
pub(crate) fn open_files(path: &Path) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    let opened = entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    opened.filter(|opened| opened == path).count()
}

/// Returns how many stores of this process watch the file at `path`.
pub(crate) fn watches(path: &Path) -> usize {
    let of_file = format!(" ino:{:x} ", fs::metadata(path).unwrap().ino());
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap();
    let shown = entries.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
    shown
        .map(|shown| {
            let watches = shown.lines().filter(|line| line.starts_with("inotify wd:"));
            watches.filter(|line| line.contains(&of_file)).count()
        })
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_end_wakes_waiters_in_all_modes() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let store = by_notifications_alone(fixture.dir.path());
    for (held, wanted) in [
        (Mode::Exclusive, Mode::Exclusive),
        (Mode::Exclusive, Mode::Shared),
        (Mode::Exclusive, permit(2)),
        (Mode::Shared, Mode::Exclusive),
        (Mode::Shared, permit(2)),
        (permit(2), Mode::Exclusive),
        (permit(2), Mode::Shared),
    ] {
        let (holder, waiter) = (fixture.wants(held), queued(&fixture.wants(wanted)));
        // In this store, in another of this process, and in another process.
        for place in [&store, &fixture.store] {
            let before = granted(place, &holder).await;
            let after = wakes(&store, &waiter, async || released(place, &holder).await);
            assert!(after.await > before, "{held}, {wanted}");
        }
        let mut helper = Helper::holding(&fixture, held);
        wakes(&store, &waiter, async || helper.release()).await;
        helper.take(&fixture, held);
        wakes(&store, &waiter, async || helper.kill()).await;
        if held != permit(2) && wanted != permit(2) {
            let flock = Flock::hold(&path, held);
            wakes(&store, &waiter, async || drop(flock)).await;
        }
    }
    assert_eq!((open_files(&path), watches(&path)), (0, 0));
}

/// The child's descriptor is the last one of the lock, and stays open.
#[tokio::test(flavor = "multi_thread")]
async fn release_wakes_waiters_despite_inherited_descriptor() {
    let fixture = StoreFixture::new();
    let mut helper = Helper::holding(&fixture, Mode::Exclusive);
    let _child = helper.hand_down();
    let store = by_notifications_alone(fixture.dir.path());
    wakes(&store, &queued(&fixture.writer()), async || {
        helper.release();
    })
    .await;
}

/// As Python's `fcntl.flock(file, LOCK_UN)` does. The kernel does not report it.
#[tokio::test(flavor = "multi_thread")]
async fn unlock_without_close_is_noticed() {
    let fixture = StoreFixture::new();
    fixture.pass("deploy", 0).await;
    let file = File::open(fixture.lock_file("deploy")).unwrap();
    file.try_lock().unwrap();
    let unlock = async || file.unlock().unwrap();
    wakes(&fixture.store, &queued(&fixture.writer()), unlock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_or_replaced_file_is_noticed() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let aside = fixture.dir.path().join("aside");
    let events: [&dyn Fn(); 3] = [
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::rename(&path, &aside).unwrap(),
        &|| fs::rename(&aside, &path).unwrap(),
    ];
    for event in events {
        is_noticed(&fixture, event).await;
    }
}

/// Checks that a waiter notices `event`, which takes the lock file of the holder away.
async fn is_noticed(fixture: &StoreFixture, event: impl FnOnce()) {
    let store = by_notifications_alone(fixture.dir.path());
    let (holder, _) = fixture.take("deploy", wall()).await;
    let waiter = queued(&fixture.request("deploy", wall()));
    wakes(&store, &waiter, async || event()).await;
    assert_eq!(watches(&fixture.lock_file("deploy")), 0);
    fixture.store.release(&holder).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_folder_is_noticed() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let mut is_removed = false;
    for _ in 0..100 {
        is_noticed(&fixture, || {
            fs::remove_file(&path).unwrap();
            // The waiter may be faster, and create its file in this folder.
            is_removed = fs::remove_dir(fixture.dir.path()).is_ok();
        })
        .await;
        if is_removed {
            return;
        }
    }
    panic!("the folder was never removed");
}

/// Nothing that was begun for a waiter takes the lock once the waiter is gone.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_waiter_leaves_nothing() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let (holder, _) = fixture.take("deploy", 0).await;
    let store = FileStore::open(fixture.dir.path()).unwrap();
    let client = Client::builder(store).env(notifications_alone()).build();
    let mut waiting = [(); 4].map(|()| tokio::spawn(client.lock("deploy").acquire()));
    until("one watch for all", || watches(&path) == 1);
    until("one open file for all", || open_files(&path) == 2);
    waiting[0].abort();
    assert!((&mut waiting[0]).await.is_err());
    assert_eq!((open_files(&path), watches(&path)), (2, 1));
    for waiting in &waiting {
        waiting.abort();
    }
    until("the holder alone", || open_files(&path) == 1);
    until("no watch", || watches(&path) == 0);
    fixture.released(&holder).await;
    assert_eq!(open_files(&path), 0);
    assert!(fixture.holders().await.is_empty());
    fixture.pass("deploy", 0).await;
}

/// The attempt may be over by then, and its wait have begun.
#[tokio::test(flavor = "multi_thread")]
async fn release_waits_for_a_cancelled_attempt() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    fixture.take("deploy", 0).await;
    for _ in 0..50 {
        let waiter = queued(&fixture.writer());
        let mut attempt = fixture.store.acquire(&waiter);
        assert!(!poll_once(attempt.as_mut()));
        drop(attempt);
        fixture.store.release(&waiter).await.unwrap();
        until("the holder alone", || {
            (open_files(&path), watches(&path)) == (1, 0)
        });
    }
}

/// The first waiter ends with its runtime.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_in_two_runtimes_are_independent() {
    let fixture = StoreFixture::new();
    let store = by_notifications_alone(fixture.dir.path());
    let (holder, _) = fixture.take("deploy", 0).await;
    let mut elsewhere = tokio::runtime::Builder::new_multi_thread();
    let elsewhere = elsewhere.worker_threads(1).enable_all().build().unwrap();
    let gone = {
        let _inside = elsewhere.enter();
        Waiting::start_until_quiet(&store, &queued(&fixture.writer()))
    };
    let waiting = Waiting::join(&store, &queued(&fixture.writer()));
    elsewhere.shutdown_background();
    assert!(gone.granted.await.is_err());
    fixture.released(&holder).await;
    waiting.granted().await;
}

/// If a waiter's own attempts notified the others, they would keep each other awake.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_do_not_wake_each_other() {
    let fixture = StoreFixture::new();
    let (holder, _) = fixture.take("deploy", 0).await;
    let stores = [(); 3].map(|()| fixture.another_store());
    let waiting: Vec<_> = stores
        .iter()
        .flat_map(|store| [(); 8].map(|()| Waiting::start(store, &queued(&fixture.reader()))))
        .collect();
    let tries = |count: usize| {
        for store in &stores {
            let before = store.long_sleeps();
            until("tries without a notification", || {
                store.long_sleeps() >= before + count
            });
        }
        stores.each_ref().map(OpenStore::sleeps)
    };
    let before = tries(2);
    let began = SystemClock.now();
    let after = tries(2);
    // A try follows each sleep, and tries are at least a second apart.
    let most = SystemClock.now().since(began).as_secs() as usize + 2;
    let sleeps = [0, 1, 2].map(|store| after[store] - before[store]);
    assert!(
        sleeps.iter().all(|count| *count <= most),
        "at most {most}: {sleeps:?}"
    );
    fixture.released(&holder).await;
    let readers = waiting.into_iter().map(Waiting::granted);
    for reader in readers {
        reader.await;
    }
}
