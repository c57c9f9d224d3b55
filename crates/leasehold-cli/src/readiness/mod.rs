//! Shows other programs whether this one holds its lock: the service manager, probes that look for a file, and hooks.

mod hooks;

use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;

use leasehold::clock::{Clock as _, SystemClock};
use sd_notify::NotifyState;

pub(crate) use crate::readiness::hooks::Hooks;

/// Tells the service manager of NOTIFY_SOCKET, keeps the file of `--ready-file` while the lock is held, and starts the hooks.
#[derive(Debug)]
pub(crate) struct Readiness {
    file: Option<PathBuf>,
    hooks: Hooks,
}

impl Readiness {
    /// Removes a file that an earlier process left, and checks that it can be written.
    pub(crate) fn new(file: Option<PathBuf>, hooks: Hooks) -> io::Result<Self> {
        if let Some(file) = &file {
            fs::write(file, "")?;
            fs::remove_file(file)?;
        }
        Ok(Self { file, hooks })
    }

    /// The lock is held from now on.
    pub(crate) fn ready(&self, lock: &str, fence: &str) -> io::Result<()> {
        let status = format!("holds lock {lock:?}, fence {fence}");
        notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        self.hooks.acquired(lock, fence);
        match &self.file {
            Some(file) => fs::write(file, format!("{lock} {fence}\n")),
            None => Ok(()),
        }
    }

    /// The lock is lost.
    pub(crate) fn lost(&self, lock: &str, reason: &str) -> io::Result<()> {
        self.hooks.lost(lock, reason);
        self.withdraw()
    }

    /// The program does this now.
    pub(crate) fn status(&self, text: &str) {
        notify(&[NotifyState::Status(text)]);
    }

    /// The program ends. Waits for hooks that run, but not long.
    pub(crate) fn end(&self) -> io::Result<()> {
        let withdrawn = self.withdraw();
        self.hooks.finish();
        withdrawn
    }

    /// The lock is no longer held.
    pub(crate) fn withdraw(&self) -> io::Result<()> {
        match self.file.as_ref().map(fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Runs `work`, and meanwhile tells the watchdog of the service manager that the program is alive.
///
/// Cancel safe if `work` is.
pub(crate) async fn watched<T>(work: impl Future<Output = T>) -> T {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return work.await;
    };
    let ping = async {
        loop {
            notify(&[NotifyState::Watchdog]);
            SystemClock.sleep_until(SystemClock.now() + limit / 2).await;
        }
    };
    tokio::select! {
        done = work => done,
        never = ping => never,
    }
}

/// Without NOTIFY_SOCKET, does nothing. A service manager that does not listen must not end the command.
fn notify(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
