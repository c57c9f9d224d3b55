use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use leasehold::store::background::blocking;
use leasehold::store::{SessionContext, locked};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::kernel::listener::{self, Listener, Watch};
use crate::locking::table::Table;

/// Whether the kernel reports what happens to the files of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotificationSource {
    /// It does.
    Kernel(fn() -> io::Result<Listener>),
    /// Other machines may use the file system too, and the kernel reports only what this machine does.
    SharedFileSystem,
    /// The kernel of this system never does, which is nothing to warn of.
    None,
}

/// What the kernel reports to one client. A task on the client's thread reads it.
#[derive(Debug)]
pub(crate) struct Notifications {
    source: NotificationSource,
    context: SessionContext,
    table: Arc<Table>,
    /// Made by the first waiter, or for the first lock that is held for longer than [`SHORT`].
    listener: Mutex<Option<Arc<Listener>>>,
    /// Whether a task is about to watch the folder.
    is_folder_due: AtomicBool,
    stop: CancellationToken,
    _stops: DropGuard,
    pub(super) warned: Once,
}

impl Notifications {
    pub(crate) fn new(
        source: NotificationSource,
        context: SessionContext,
        table: Arc<Table>,
    ) -> Self {
        let stop = CancellationToken::new();
        Self {
            source,
            context,
            table,
            listener: Mutex::default(),
            is_folder_due: AtomicBool::new(false),
            _stops: stop.clone().drop_guard(),
            stop,
            warned: Once::new(),
        }
    }

    /// Watches the file at `path`, if the kernel can.
    pub(crate) fn watch(&self, path: &Path) -> Option<Watch> {
        let watched = self.listener().and_then(|it| it.watch(path));
        watched.map_err(|error| self.warn_once(&error)).ok()
    }

    /// Notices, from a moment after the first grant on, if a held lock file has left the folder at `path`, if the kernel can.
    ///
    /// A command that ends within that moment needs no instance, whose end takes the kernel milliseconds.
    pub(crate) fn watch_folder(self: &Arc<Self>, path: &Path) {
        let is_watched = || {
            let listener = locked(&self.listener);
            listener.as_ref().is_some_and(|it| it.watches_folder())
        };
        if !matches!(self.source, NotificationSource::Kernel(_))
            || is_watched()
            || self.is_folder_due.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let (this, path) = (Arc::downgrade(self), path.to_owned());
        let clock = Arc::clone(&self.context.env().clock);
        self.context.spawn(async move {
            clock.sleep_until(clock.now() + SHORT).await;
            if let Some(this) = this.upgrade() {
                this.is_folder_due.store(false, Ordering::Relaxed);
                // If it fails, the next renewal notices it.
                let _ = this.listener().and_then(|it| it.watch_folder(&path));
                let table = Arc::clone(&this.table);
                if blocking(move || table.has_lost_one()).await.unwrap_or(true) {
                    this.context.renew_now();
                }
            }
        });
    }

    fn listener(&self) -> io::Result<Arc<Listener>> {
        let start = match self.source {
            NotificationSource::Kernel(start) => start,
            NotificationSource::SharedFileSystem | NotificationSource::None => {
                let reason = "the file system may not be local";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
        };
        let mut listener = locked(&self.listener);
        if let Some(listener) = listener.as_ref().filter(|listener| !listener.is_over()) {
            return Ok(Arc::clone(listener));
        }
        let started = Arc::new(start()?);
        // The task ends after the store: it must not keep the locks of the store open.
        let (table, context) = (Arc::downgrade(&self.table), self.context.clone());
        let taken_away = move |name: Option<&OsStr>| {
            if table.upgrade().is_some_and(|table| table.has_file(name)) {
                context.renew_now();
            }
        };
        let read = listener::read(Arc::clone(&started), taken_away);
        let stop = self.stop.clone();
        self.context.spawn(async move {
            stop.run_until_cancelled(read).await;
        });
        Ok(listener.insert(started).clone())
    }

    fn warn_once(&self, error: &io::Error) {
        if matches!(self.source, NotificationSource::None) {
            return;
        }
        self.warned.call_once(|| {
            tracing::warn!(
                %error,
                "the kernel does not tell when a lock file is closed: waiters ask at random instead"
            );
        });
    }
}

/// How long a lock is held before its folder is watched.
const SHORT: Duration = Duration::from_millis(50);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use leasehold_testkit::virtual_env;
    use tokio::runtime::Handle;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn short_locks_need_no_inotify_instance() {
        let dir = tempfile::tempdir().unwrap();
        let env = virtual_env(0);
        let clock = Arc::clone(&env.clock);
        let client = Arc::new(env.this_process(None));
        let context = SessionContext::new(env, client, Handle::current());
        let source = NotificationSource::Kernel(Listener::start);
        let notifications = Arc::new(Notifications::new(source, context, Arc::default()));
        let is_open = || locked(&notifications.listener).is_some();
        notifications.watch_folder(dir.path());
        clock.sleep_until(clock.now() + SHORT / 2).await;
        assert!(!is_open());
        clock.sleep_until(clock.now() + SHORT).await;
        assert!(is_open());
    }
}
