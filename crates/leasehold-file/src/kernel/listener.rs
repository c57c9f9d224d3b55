//! What the kernel reports about lock files, and about the folder that they are in.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};

use leasehold::store::locked;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// One inotify instance, for all waiters and holders of a client. [`read`] reads it.
#[derive(Debug)]
pub(crate) struct Listener {
    inotify: Inotify,
    /// `None` once no task reads it.
    watched: Mutex<Option<HashMap<WatchDescriptor, Watched>>>,
    /// The folder, once it is watched.
    folder: Mutex<Option<WatchDescriptor>>,
}

/// A file that is watched.
#[derive(Debug, Default)]
struct Watched {
    users: usize,
    changes: watch::Sender<()>,
}

/// A user's share in watching a file, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    listener: Arc<Listener>,
    file: WatchDescriptor,
    changes: watch::Receiver<()>,
}

impl Listener {
    /// Asks the kernel for an instance. A user may have 128 of them, or more if the administrator
    /// allows it.
    pub(crate) fn start() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        Ok(Self {
            inotify,
            watched: Mutex::new(Some(HashMap::new())),
            folder: Mutex::default(),
        })
    }

    /// Returns whether it watches a folder.
    pub(crate) fn watches_folder(&self) -> bool {
        !self.is_over() && locked(&self.folder).is_some()
    }

    /// Watches the folder at `path`, unless it does already.
    pub(crate) fn watch_folder(&self, path: &Path) -> io::Result<()> {
        let mut folder = locked(&self.folder);
        if folder.is_none() {
            *folder = Some(self.inotify.add_watch(path, TAKES_A_NAME_AWAY)?);
        }
        Ok(())
    }

    /// Watches the file that is now at `path`.
    pub(crate) fn watch(self: &Arc<Self>, path: &Path) -> io::Result<Watch> {
        // Take the lock first: another user of this file may be ending its watch, which is the
        // same watch to the kernel.
        let mut watched = locked(&self.watched);
        let Some(watched) = &mut *watched else {
            return Err(io::Error::other("the notifications can no longer be read"));
        };
        let file = self.inotify.add_watch(path, WORTH_A_TRY)?;
        let entry = watched.entry(file).or_default();
        entry.users += 1;
        Ok(Watch {
            listener: self.clone(),
            file,
            changes: entry.changes.subscribe(),
        })
    }

    /// Returns whether its task has ended.
    pub(crate) fn is_over(&self) -> bool {
        locked(&self.watched).is_none()
    }

    /// Reads until an error, as [`read`] says.
    async fn read(&self, taken_away: impl Fn(Option<&OsStr>)) -> io::Error {
        let descriptor = match self.registered() {
            Ok(descriptor) => descriptor,
            Err(error) => return error,
        };
        loop {
            let read = |_: &_| self.inotify.read_events().map_err(io::Error::from);
            match descriptor.async_io(Interest::READABLE, read).await {
                Ok(events) => {
                    self.tell(&events);
                    self.look_at_folder(&events, &taken_away);
                }
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

    fn look_at_folder(&self, events: &[InotifyEvent], taken_away: impl Fn(Option<&OsStr>)) {
        let mut folder = locked(&self.folder);
        for event in events {
            let is_lost = event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
            if !is_lost && Some(event.wd) != *folder {
                continue;
            }
            if event.mask.intersects(FOLDER_GONE) {
                // The next attempt watches the folder that is there by then.
                if let Some(gone) = folder.take() {
                    // The kernel has ended the watch of a folder that was removed.
                    let _ = self.inotify.rm_watch(gone);
                }
                taken_away(None);
            } else {
                taken_away(event.name.as_deref());
            }
        }
    }

    fn tell(&self, events: &[InotifyEvent]) {
        let watched = locked(&self.watched);
        let Some(watched) = &*watched else { return };
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

/// Reads what the kernel reports, until an error. The users of its watches then notice that it is over. Calls
/// `taken_away` with the name of each file that left the folder, or that another file replaced; with `None` if
/// that may be any file.
pub(crate) async fn read(listener: Arc<Listener>, taken_away: impl Fn(Option<&OsStr>)) {
    let error = listener.read(taken_away).await;
    tracing::debug!(%error, "the notifications of the kernel ended");
    locked(&listener.watched).take();
}

impl Watch {
    /// Returns the same watch with its notifications forgotten. A try made now sees their effects.
    pub(crate) fn forgetful(mut self) -> Self {
        self.changes.mark_unchanged();
        self
    }

    /// Resolves once something has happened to the file since the watch began or last forgot. `false` if
    /// the kernel no longer reports it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub(crate) async fn changed(&self) -> bool {
        self.changes.clone().changed().await.is_ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = locked(&self.listener.watched);
        let Some(watched) = &mut *watched else { return };
        let Some(entry) = watched.get_mut(&self.file) else {
            return;
        };
        entry.users -= 1;
        if entry.users == 0 {
            watched.remove(&self.file);
            // The kernel may have ended it by itself, when the file system was unmounted.
            let _ = self.listener.inotify.rm_watch(self.file);
        }
    }
}

/// What happens to a name in the folder, or to the folder itself.
const TAKES_A_NAME_AWAY: AddWatchFlags = AddWatchFlags::IN_DELETE
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

/// What ends the watch of a folder, or what it is good for.
const FOLDER_GONE: AddWatchFlags = AddWatchFlags::IN_DELETE_SELF
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_UNMOUNT)
    .union(AddWatchFlags::IN_IGNORED);

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
    use leasehold::store::background;

    use super::*;

    fn started() -> Arc<Listener> {
        let listener = Arc::new(Listener::start().unwrap());
        drop(background::spawn(read(Arc::clone(&listener), |_| ())));
        listener
    }

    async fn sees_a_change(watch: &Watch) -> bool {
        let end = SystemClock.now() + Duration::from_secs(30);
        within(&SystemClock, end, watch.changed()).await == Some(true)
    }

    async fn sees_no_change(watch: &Watch) -> bool {
        let soon = SystemClock.now() + Duration::from_millis(50);
        within(&SystemClock, soon, watch.changed()).await.is_none()
    }

    #[tokio::test]
    async fn all_watchers_are_notified_of_a_release() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.lock"), dir.path().join("b.lock"));
        for path in [&path, &other] {
            fs::write(path, "").unwrap();
        }
        let listener = started();
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
        let listener = started();
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
        assert!(locked(&listener.watched).as_ref().unwrap().is_empty());
        let again = listener.watch(&path).unwrap();
        drop(File::open(&path).unwrap());
        assert!(sees_a_change(&again).await);
    }
}
