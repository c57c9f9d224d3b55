//! What the kernel reports about the lock files that waiters watch.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};

use leasehold::store::locked;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::kernel::retry_timer::RetryTimer;

/// One inotify instance, for all waiters of a store.
///
/// No task of its own reads it. One of the waiters reads for all, and when it ends, the next one takes
/// over. So it works in any number of runtimes, and outlives each.
#[derive(Debug)]
pub(crate) struct Listener {
    inotify: Inotify,
    watched: Mutex<HashMap<WatchDescriptor, Watched>>,
    reading: AsyncMutex<()>,
}

/// A file that is watched.
#[derive(Debug, Default)]
struct Watched {
    waiters: usize,
    changes: watch::Sender<()>,
}

/// One waiter's share in watching a file, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    /// When the waiter tries, by the changes of the file.
    pub(crate) retry_timer: RetryTimer,
    listener: Arc<Listener>,
    file: WatchDescriptor,
    changes: watch::Receiver<()>,
}

/// Waiters for the notifications of a [`Watch`].
#[derive(Debug)]
pub(crate) struct Listening {
    listener: Arc<Listener>,
    changes: watch::Receiver<()>,
}

impl Listener {
    /// Asks the kernel for an instance. A user may have 128 of them, or more if the administrator
    /// allows it.
    pub(crate) fn start() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        Ok(Self {
            inotify,
            watched: Mutex::default(),
            reading: AsyncMutex::default(),
        })
    }

    /// Watches the file that is now at `path`.
    pub(crate) fn watch(self: &Arc<Self>, path: &Path) -> io::Result<Watch> {
        // Take the lock first: another waiter for this file may be ending its watch, which is the
        // same watch to the kernel.
        let mut watched = locked(&self.watched);
        let file = self.inotify.add_watch(path, WORTH_A_TRY)?;
        let entry = watched.entry(file).or_default();
        entry.waiters += 1;
        Ok(Watch {
            retry_timer: RetryTimer::new(),
            listener: self.clone(),
            file,
            changes: entry.changes.subscribe(),
        })
    }

    /// Reads for all waiters, once no other waiter does. Returns only after an error.
    async fn read(&self) -> io::Error {
        let _reading = self.reading.lock().await;
        let descriptor = match self.registered() {
            Ok(descriptor) => descriptor,
            Err(error) => return error,
        };
        loop {
            let read = |_: &_| self.inotify.read_events().map_err(io::Error::from);
            match descriptor.async_io(Interest::READABLE, read).await {
                Ok(events) => self.tell(&events),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error,
            }
        }
    }

    /// Registers the instance in the runtime of the caller.
    #[allow(
        deprecated,
        reason = "its successor is unsafe, for types that give away a descriptor they do not own: \
                  this one is borrowed for as long as it is registered"
    )]
    fn registered(&self) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
        AsyncFd::with_interest(self.inotify.as_fd(), Interest::READABLE)
    }

    fn tell(&self, events: &[InotifyEvent]) {
        let watched = locked(&self.watched);
        for event in events {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                // The kernel does not say which events it dropped.
                watched
                    .values()
                    .for_each(|file| file.changes.send_replace(()));
            } else if let Some(file) = watched.get(&event.wd) {
                file.changes.send_replace(());
            }
        }
    }
}

impl Watch {
    /// Returns the same watch with its notifications forgotten. A try made now sees their effects.
    pub(crate) fn forgetful(mut self) -> Self {
        self.changes.mark_unchanged();
        self
    }

    pub(crate) fn listening(&self) -> Listening {
        Listening {
            listener: self.listener.clone(),
            changes: self.changes.clone(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = locked(&self.listener.watched);
        let Some(entry) = watched.get_mut(&self.file) else {
            return;
        };
        entry.waiters -= 1;
        if entry.waiters == 0 {
            watched.remove(&self.file);
            // The kernel may have ended it by itself, when the file system was unmounted.
            let _ = self.listener.inotify.rm_watch(self.file);
        }
    }
}

impl Listening {
    /// Resolves once something has happened to the file since the watch began or last forgot.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub(crate) async fn changed(&mut self) -> io::Result<()> {
        tokio::select! {
            biased;
            // An error means that the watch has ended, and with it the wait.
            _ = self.changes.changed() => Ok(()),
            error = self.listener.read() => Err(error),
        }
    }
}

/// A close, because it may be the holder's, and every event that takes the name away from the file. A
/// file that is still open elsewhere is not deleted but loses a link, which changes its attributes.
const WORTH_A_TRY: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE
    .union(AddWatchFlags::IN_CLOSE_NOWRITE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_DONT_FOLLOW);

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::Duration;

    use leasehold::clock::{Clock as _, SystemClock, within};

    use super::*;

    async fn sees_a_change(watch: &Watch) -> bool {
        let end = SystemClock.now() + Duration::from_secs(30);
        let change = within(&SystemClock, end, watch.listening().changed()).await;
        change.is_some_and(|change| change.is_ok())
    }

    async fn sees_no_change(watch: &Watch) -> bool {
        let soon = SystemClock.now() + Duration::from_millis(50);
        let change = within(&SystemClock, soon, watch.listening().changed()).await;
        change.is_none()
    }

    #[tokio::test]
    async fn all_watchers_are_notified_of_a_release() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.lock"), dir.path().join("b.lock"));
        for path in [&path, &other] {
            fs::write(path, "").unwrap();
        }
        let listener = Arc::new(Listener::start().unwrap());
        let mut watches = [(); 2].map(|()| listener.watch(&path).unwrap());
        let elsewhere = listener.watch(&other).unwrap();
        let elsewhere_again = listener.watch(&other).unwrap();
        drop(elsewhere_again);
        let events: [&dyn Fn(); 4] = [
            &|| drop(File::open(&path).unwrap()),
            &|| drop(File::options().write(true).open(&path).unwrap()),
            &|| fs::rename(&path, dir.path().join("c.lock")).unwrap(),
            &|| fs::remove_file(dir.path().join("c.lock")).unwrap(),
        ];
        for event in events {
            assert!(sees_no_change(&watches[0]).await);
            event();
            for watch in &watches {
                assert!(sees_a_change(watch).await);
                // The watch reports the change again until it forgets it.
                assert!(sees_a_change(watch).await);
            }
            watches = watches.map(Watch::forgetful);
        }
        assert!(sees_no_change(&elsewhere).await);
        drop(File::open(&other).unwrap());
        assert!(sees_a_change(&elsewhere).await);
    }

    #[tokio::test]
    async fn watch_ends_with_its_last_user() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        fs::write(&path, "").unwrap();
        let listener = Arc::new(Listener::start().unwrap());
        let [one, two] = [(); 2].map(|()| listener.watch(&path).unwrap());
        let number = std::os::fd::AsRawFd::as_raw_fd(&listener.inotify.as_fd());
        let of_the_kernel = || {
            let shown = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
            shown.matches("inotify wd:").count()
        };
        assert_eq!(of_the_kernel(), 1);
        drop(one);
        assert_eq!(of_the_kernel(), 1);
        drop(two);
        assert_eq!(of_the_kernel(), 0);
        assert!(locked(&listener.watched).is_empty());
        let again = listener.watch(&path).unwrap();
        drop(File::open(&path).unwrap());
        assert!(sees_a_change(&again).await);
    }
}
