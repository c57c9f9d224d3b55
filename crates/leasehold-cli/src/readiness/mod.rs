//! Shows other programs whether this one holds its lock: the service manager, probes that look for a file, and hooks.

mod hooks;

use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

    /// The lock is held from now on. Like the others, returns what went wrong.
    pub(crate) fn ready(&self, lock: &str, fence: &str) -> Result<(), String> {
        let status = format!("holds lock {lock:?}, fence {fence}");
        notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        self.hooks.acquired(lock, fence);
        self.change_file(|file| fs::write(file, format!("{lock} {fence}\n")))
    }

    /// The lock is lost.
    pub(crate) fn lost(&self, lock: &str, reason: &str) -> Result<(), String> {
        // A hook then sees what a probe sees.
        let withdrawn = self.withdraw();
        self.hooks.lost(lock, reason);
        withdrawn
    }

    /// The program does this now.
    pub(crate) fn status(&self, text: &str) {
        notify(&[NotifyState::Status(text)]);
    }

    /// The program ends. Waits for hooks that run, but not long.
    pub(crate) fn end(&self) -> Result<(), String> {
        let withdrawn = self.withdraw();
        match self.hooks.finish() {
            true => withdrawn,
            false => Err("a hook still runs, and is left alone".into()),
        }
    }

    /// The lock is no longer held.
    pub(crate) fn withdraw(&self) -> Result<(), String> {
        self.change_file(|file| match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }

    fn change_file(&self, change: impl Fn(&Path) -> io::Result<()>) -> Result<(), String> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let text = |error| format!("cannot change --ready-file {}: {error}", file.display());
        change(file).map_err(text)
    }
}

/// Runs `work`, and meanwhile tells the watchdog of the service manager that the program is alive.
///
/// Cancel safe if `work` is.
pub(crate) async fn watched<T>(work: impl Future<Output = T>) -> T {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return work.await;
    };
    let pause = (limit / 2).max(PING_MIN);
    let ping = async {
        loop {
            notify(&[NotifyState::Watchdog]);
            SystemClock.sleep_until(SystemClock.now() + pause).await;
        }
    };
    tokio::select! {
        done = work => done,
        never = ping => never,
    }
}

/// Without NOTIFY_SOCKET, does nothing. A service manager that does not listen must not end the command.
fn notify(states: &[NotifyState<'_>]) {
    let socket = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
    let _ = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => notify_abstract(name, states),
        None => sd_notify::notify(states),
    };
}

/// Does the same for a socket whose name is in no file system, which `sd_notify` takes for a file.
#[cfg(target_os = "linux")]
fn notify_abstract(name: &[u8], states: &[NotifyState<'_>]) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let address = SocketAddr::from_abstract_name(name)?;
    let text: String = states.iter().map(|state| format!("{state}\n")).collect();
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn notify_abstract(_: &[u8], _: &[NotifyState<'_>]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The shortest pause between two messages to the watchdog, whose limit may be 0 by mistake.
const PING_MIN: Duration = Duration::from_millis(10);
