use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leasehold_testkit::servers::RedisServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The condition of the last server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Condition {
    Healthy,
    /// Stops for 30 ms of every 40.
    Slow,
    /// Stops for good; its kernel still accepts connections and data.
    Frozen,
}

const STOPPED: Duration = Duration::from_millis(30);
const RUNNING: Duration = Duration::from_millis(10);

impl Condition {
    pub(super) const ALL: [Self; 3] = [Self::Healthy, Self::Slow, Self::Frozen];

    /// Puts `server` into this condition while `work` runs.
    pub(super) fn during<T>(self, server: &RedisServer, work: impl FnOnce() -> T) -> T {
        let has_ended = AtomicBool::new(false);
        let pid = server.pid();
        let outcome = thread::scope(|scope| {
            match self {
                Self::Healthy => {}
                Self::Frozen => server.freeze(),
                Self::Slow => {
                    scope.spawn(|| {
                        while !has_ended.load(Ordering::Relaxed) {
                            signal(pid, Signal::SIGSTOP);
                            // The length of the stop is what is measured.
                            thread::sleep(STOPPED);
                            signal(pid, Signal::SIGCONT);
                            // As above.
                            thread::sleep(RUNNING);
                        }
                    });
                }
            }
            let outcome = work();
            has_ended.store(true, Ordering::Relaxed);
            outcome
        });
        signal(pid, Signal::SIGCONT);
        outcome
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Healthy => "all healthy",
            Self::Slow => "one slow",
            Self::Frozen => "one frozen",
        })
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // An error means that the server has ended, and then the run fails by itself.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
