use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, Once};

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
    /// Made by the first attempt.
    listener: Mutex<Option<Arc<Listener>>>,
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

    /// Notices from now on if a held lock file leaves the folder at `path`, if the kernel can.
    pub(crate) fn watch_folder(&self, path: &Path) {
        if let NotificationSource::Kernel(_) = self.source {
            // Otherwise the next renewal notices it.
            let _ = self.listener().and_then(|it| it.watch_folder(path));
        }
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
