use std::io;
use std::sync::OnceLock;

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Resets ignored signals to their default action for all programs that this process starts.
///
/// Signals are ignored under `nohup` and in a background job of a script. A started program inherits an
/// ignored signal, and gets the default action for a caught one. So this function catches the ignored
/// signals with a handler that does nothing. In this process they still have no effect.
///
/// # Panics
///
/// If the kernel refuses.
pub fn reset_ignored_signals() {
    static OUTCOME: OnceLock<Result<(), String>> = OnceLock::new();
    let outcome = OUTCOME.get_or_init(|| catch_ignored().map_err(|error| error.to_string()));
    assert_eq!(*outcome, Ok(()), "ignored signals cannot be reset");
}

/// The signals of tests and of job control, and that of the end of a child.
const SIGNALS: [Signal; 12] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGCHLD,
];

fn catch_ignored() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let ignored = SIGNALS.map(|it| it as i32);
    let mut ignored = ignored.into_iter().filter(|it| mask & (1 << (it - 1)) != 0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    // The handler stays until the process ends.
    let caught = ignored.try_for_each(|it| signal(SignalKind::from_raw(it)).map(drop));
    drop(entered);
    // This also works if the caller is in a runtime of its own.
    runtime.shutdown_background();
    caught
}
