//! Waiters, and the notifications of the kernel.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime, within};
use leasehold::env::Env;
use leasehold::store::{Attempt, BoxFuture, Claim, Inspection as _, Store};
use leasehold::{Client, Fence, Mode};
use leasehold_file::FileStore;
use leasehold_testkit::servers::until;
use tokio::task::JoinHandle;

use crate::flock::Flock;
use crate::helper::Helper;
use crate::world::{TIMEOUT, World, in_turn, key};

/// On this clock, a waiter without notifications waits indefinitely.
#[derive(Debug)]
struct WordsAlone;

impl Clock for WordsAlone {
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

    fn stood_still(&self, span: Duration) {
        SystemClock.stood_still(span);
    }
}

/// Opens a store whose waiters never try without a notification, beyond their first tries.
pub(crate) fn by_words_alone(dir: &Path) -> FileStore {
    let env = Env {
        clock: Arc::new(WordsAlone),
        ..Env::default()
    };
    FileStore::options().env(env).open(dir).unwrap()
}

/// A waiter in the background, which leaves once the lock was granted.
pub(crate) struct Waiting {
    granted: JoinHandle<Fence>,
    attempts: Arc<AtomicU32>,
}

impl Waiting {
    pub(crate) fn start(store: &FileStore, claim: &Claim) -> Self {
        let attempts = Arc::new(AtomicU32::new(0));
        let (store, claim, counted) = (store.clone(), claim.clone(), attempts.clone());
        let granted = tokio::spawn(async move {
            loop {
                let attempt = store.acquire(&claim).await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                match attempt {
                    Attempt::Granted(grant) => {
                        store.leave(&claim);
                        store.flush().await;
                        return grant.fence;
                    }
                    Attempt::Busy(_) => store.wait(&claim).await,
                }
            }
        });
        Self { granted, attempts }
    }

    /// Starts it, and returns once its first tries are over.
    pub(crate) fn start_until_quiet(store: &FileStore, claim: &Claim) -> Self {
        let waiting = Self::start(store, claim);
        until("the first tries", || waiting.attempts() >= FIRST_TRIES);
        waiting
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::SeqCst)
    }

    pub(crate) async fn granted(self) -> Fence {
        let end = SystemClock.now() + TIMEOUT;
        let granted = within(&SystemClock, end, self.granted).await;
        granted.expect("a word").unwrap()
    }
}

/// The first try, and those that follow without a notification.
const FIRST_TRIES: u32 = 4;

/// Returns how often this process has `path`, or what was there, open.
fn open_files(path: &Path) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    let opened = entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    opened.filter(|opened| opened == path).count()
}

/// Returns how many stores of this process watch the file at `path`.
fn watches(path: &Path) -> usize {
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
async fn a_release_wakes_waiters_in_both_modes() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    for (held, wanted) in [
        (Mode::Exclusive, Mode::Exclusive),
        (Mode::Exclusive, Mode::Shared),
        (Mode::Shared, Mode::Exclusive),
    ] {
        let holder = world.claim("deploy", 0).with_mode(held);
        let waiter = in_turn(&world.claim("deploy", 0).with_mode(wanted));
        // In this store, in another of this process, and in another process.
        for place in [&store, &world.store] {
            let before = crate::world::fence(place.acquire(&holder).await);
            let waiting = Waiting::start_until_quiet(&store, &waiter);
            place.release(&holder).await.unwrap();
            assert!(waiting.granted().await > before);
            store.release(&waiter).await.unwrap();
        }
        let mut helper = Helper::start();
        helper.take(world.dir.path(), "deploy", held);
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        helper.ask(&["release"]);
        waiting.granted().await;
        store.release(&waiter).await.unwrap();
    }
    assert_eq!(open_files(&world.lock_file("deploy")), 0);
    assert_eq!(watches(&world.lock_file("deploy")), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_end_wakes_waiters_in_both_modes() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    for (held, wanted) in [
        (Mode::Exclusive, Mode::Shared),
        (Mode::Shared, Mode::Exclusive),
    ] {
        let waiter = in_turn(&world.claim("deploy", 0).with_mode(wanted));
        let mut helper = Helper::start();
        helper.take(world.dir.path(), "deploy", held);
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        helper.kill();
        waiting.granted().await;
        store.release(&waiter).await.unwrap();

        let flock = Flock::hold(&world.lock_file("deploy"), held);
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        drop(flock);
        waiting.granted().await;
        store.release(&waiter).await.unwrap();
    }
}

/// The child's descriptor is the last one of the lock, and stays open.
#[tokio::test(flavor = "multi_thread")]
async fn release_wakes_waiters_despite_inherited_descriptor() {
    let world = World::new();
    let mut helper = Helper::start();
    helper.take(world.dir.path(), "deploy", Mode::Exclusive);
    let _child = Child::new(helper.ask(&["hand down"]));
    let store = by_words_alone(world.dir.path());
    let waiting = Waiting::start_until_quiet(&store, &in_turn(&world.claim("deploy", 0)));
    helper.ask(&["release"]);
    waiting.granted().await;
}

/// A process of a helper. Dropping it kills it.
pub(crate) struct Child(i32);

impl Child {
    /// By its number, as the helper answered it.
    pub(crate) fn new(pid: String) -> Self {
        Self(pid.parse().unwrap())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.0);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
}

/// As Python's `fcntl.flock(file, LOCK_UN)` does. The kernel does not report it.
#[tokio::test(flavor = "multi_thread")]
async fn unlock_without_close_is_noticed() {
    let world = World::new();
    world.pass("deploy", 0).await;
    let file = File::open(world.lock_file("deploy")).unwrap();
    file.try_lock().unwrap();
    let waiting = Waiting::start_until_quiet(&world.store, &in_turn(&world.claim("deploy", 0)));
    file.unlock().unwrap();
    waiting.granted().await;
}

/// Removes a folder while a waiter may create files in it again.
fn remove_folder(path: &Path) {
    while let Err(error) = fs::remove_dir_all(path) {
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_or_replaced_file_is_noticed() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    let path = world.lock_file("deploy");
    let aside = world.dir.path().join("aside");
    let events: [&dyn Fn(); 4] = [
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::rename(&path, &aside).unwrap(),
        &|| fs::rename(&aside, &path).unwrap(),
        &|| remove_folder(world.dir.path()),
    ];
    for event in events {
        let (holder, _) = world.take("deploy", crate::world::wall()).await;
        let waiter = in_turn(&world.claim("deploy", crate::world::wall()));
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        event();
        waiting.granted().await;
        assert_eq!(watches(&path), 0);
        store.release(&waiter).await.unwrap();
        world.store.release(&holder).await.unwrap();
    }
}

/// Nothing that was begun for a waiter takes the lock once the waiter is gone.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_waiter_leaves_nothing() {
    let world = World::new();
    let path = world.lock_file("deploy");
    let (holder, _) = world.take("deploy", 0).await;
    let client = Client::new(by_words_alone(world.dir.path()));
    let waiting: Vec<_> = (0..4)
        .map(|_| tokio::spawn(client.lock("deploy").acquire()))
        .collect();
    until("four waiters", || open_files(&path) == 5);
    until("one watch for all", || watches(&path) == 1);
    waiting[0].abort();
    until("three waiters", || open_files(&path) == 4);
    assert_eq!(watches(&path), 1);
    for waiting in &waiting {
        waiting.abort();
    }
    until("the holder alone", || open_files(&path) == 1);
    until("no watch", || watches(&path) == 0);
    world.store.release(&holder).await.unwrap();
    assert_eq!(open_files(&path), 0);
    let holders = world.store.holders(&key("deploy")).await;
    assert!(holders.unwrap().is_empty());
    world.pass("deploy", 0).await;
}

#[tokio::test]
async fn leaving_waits_for_a_cancelled_attempt() {
    let world = World::new();
    let path = world.lock_file("deploy");
    world.take("deploy", 0).await;
    for _ in 0..50 {
        let waiter = in_turn(&world.claim("deploy", 0));
        let begun = within(
            &SystemClock,
            SystemClock.now(),
            world.store.acquire(&waiter),
        );
        drop(begun.await);
        world.store.leave(&waiter);
        world.store.flush().await;
        assert_eq!((open_files(&path), watches(&path)), (1, 0));
    }
}

/// The waiter that reads the kernel's events for all may end in the middle of it.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_in_two_runtimes_are_independent() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    let (holder, _) = world.take("deploy", 0).await;
    let elsewhere = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let gone = {
        let _inside = elsewhere.enter();
        Waiting::start_until_quiet(&store, &in_turn(&world.claim("deploy", 0)))
    };
    let waiting = Waiting::start_until_quiet(&store, &in_turn(&world.claim("deploy", 0)));
    elsewhere.shutdown_background();
    assert!(gone.granted.await.is_err());
    world.store.release(&holder).await.unwrap();
    waiting.granted().await;
}

/// If a waiter's own attempts notified the others, they would keep each other awake.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_do_not_wake_each_other() {
    let world = World::new();
    let (holder, _) = world.take("deploy", 0).await;
    let began = Instant::now();
    let waiting: Vec<_> = (0..16)
        .map(|_| Waiting::start(&world.store, &in_turn(&world.shared("deploy", 0))))
        .collect();
    for waiting in &waiting {
        until("two tries without a word", || {
            waiting.attempts() >= FIRST_TRIES + 2
        });
    }
    // Without notifications there is at least a second between two tries.
    let attempts: Vec<_> = waiting.iter().map(Waiting::attempts).collect();
    let most = u64::from(FIRST_TRIES) + began.elapsed().as_secs() + 1;
    assert!(
        attempts.iter().all(|count| u64::from(*count) <= most),
        "at most {most}: {attempts:?}"
    );
    world.store.release(&holder).await.unwrap();
    for waiting in waiting {
        waiting.granted().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_waiters_succeed_by_notifications_alone() {
    const TURNS: u32 = 10;
    let world = World::new();
    let number = world.dir.path().join("number");
    fs::write(&number, "0").unwrap();
    let stores: Vec<_> = (0..4).map(|_| by_words_alone(world.dir.path())).collect();
    let clients: Vec<_> = stores
        .iter()
        .flat_map(|store| (0..4).map(|_| Client::new(store.clone())))
        .collect();
    let work: Vec<_> = clients
        .iter()
        .map(|client| {
            let (lock, number) = (client.lock("deploy"), number.clone());
            tokio::spawn(async move {
                for _ in 0..TURNS {
                    let guard = lock.acquire().await.unwrap();
                    let read: u32 = fs::read_to_string(&number).unwrap().parse().unwrap();
                    fs::write(&number, (read + 1).to_string()).unwrap();
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    let end = SystemClock.now() + 2 * TIMEOUT;
    for work in work {
        let done = within(&SystemClock, end, work).await;
        done.expect("nobody is left waiting").unwrap();
    }
    assert_eq!(fs::read_to_string(&number).unwrap(), "160");
    let path = world.lock_file("deploy");
    until("nothing open", || open_files(&path) == 0);
    until("nothing watched", || watches(&path) == 0);
}
