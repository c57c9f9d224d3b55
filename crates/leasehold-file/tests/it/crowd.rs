//! Many waiters of one client.

use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold_file::FileStore;
use leasehold_testkit::servers::until;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::store_fixture::{StoppedWait, StoreFixture, TIMEOUT, granted, queued};
use crate::waiting::{Waiting, by_notifications_alone, open_files, watches};

/// Counts how often a file is opened.
struct Opens(Inotify);

impl Opens {
    fn of(fixture: &StoreFixture) -> Self {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        let path = fixture.lock_file("deploy");
        inotify.add_watch(&path, AddWatchFlags::IN_OPEN).unwrap();
        Self(inotify)
    }

    /// Returns the number since the last call. The kernel may count several in a row as one.
    fn count(&self) -> usize {
        self.0.read_events().map_or(0, |events| events.len())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crowd_shares_one_file_and_rests() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let (holder, _) = fixture.take("deploy", 0).await;
    let client = Client::new(FileStore::open(fixture.dir.path()).unwrap());
    let waiting: Vec<_> = (0..400)
        .map(|_| {
            let lock = client.lock("deploy");
            tokio::spawn(async move { lock.acquire().await.unwrap().release().await })
        })
        .collect();
    until("one watch for all", || watches(&path) == 1);
    until("one open file for all", || open_files(&path) == 2);
    let opens = Opens::of(&fixture);
    SystemClock
        .sleep_until(SystemClock.now() + Duration::from_millis(500))
        .await;
    assert_eq!(opens.count(), 0);
    fixture.released(&holder).await;
    let end = SystemClock.now() + 2 * TIMEOUT;
    for waiting in waiting {
        let released = within(&SystemClock, end, waiting).await;
        released.expect("the lock").unwrap().unwrap();
    }
    // A holder opens the file, and so does the next waiter, which announces itself.
    let opened = opens.count();
    assert!(opened <= 3 * 400, "{opened}");
}

/// It waits for another lock of the same client.
#[tokio::test(flavor = "multi_thread")]
async fn unpolled_waiter_delays_no_other_lock() {
    let fixture = StoreFixture::new();
    let store = by_notifications_alone(fixture.dir.path());
    let (_other, _) = fixture.take("other", 0).await;
    let (holder, _) = fixture.take("deploy", 0).await;
    let unpolled = queued(&fixture.request("other", 0));
    let mut waiting = store.acquire(&unpolled);
    let quiet = store.long_sleeps();
    let polled = std::future::poll_fn(|context| {
        let polled = waiting.as_mut().poll(context);
        assert!(polled.is_pending(), "{polled:?}");
        match store.long_sleeps() > quiet {
            true => std::task::Poll::Ready(()),
            false => {
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            }
        }
    });
    polled.await;
    let next = Waiting::start_until_quiet(&store, &queued(&fixture.writer()));
    fixture.released(&holder).await;
    next.granted().await;
}

/// Neither keeps a file open, or a place.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_that_give_up_leave_nothing() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let (holder, _) = fixture.take("deploy", 0).await;
    let stopped = StoppedWait::begin(&fixture.store, &fixture.writer()).await;
    stopped.leave().await;
    let store = fixture.another_store();
    for _ in 0..200 {
        let waiter = queued(&fixture.writer());
        let soon = SystemClock.now() + Duration::from_micros(200);
        let gave_up = within(&SystemClock, soon, store.acquire(&waiter)).await;
        assert!(gave_up.is_none());
    }
    until("the holder alone", || open_files(&path) == 1);
    until("no watch", || watches(&path) == 0);
    fixture.released(&holder).await;
    granted(&store, &fixture.writer()).await;
}
