use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
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

impl Condition {
    pub(super) const ALL: [Self; 3] = [Self::Healthy, Self::Slow, Self::Frozen];

    /// Puts `server` into this condition until the handle is dropped.
    pub(super) fn begin(self, server: &RedisServer) -> Spell {
        let ended = Arc::new(AtomicBool::new(false));
        let pid = server.pid();
        let fits = Arc::clone(&ended);
        let stalling = match self {
            Self::Healthy => None,
            Self::Frozen => {
                server.freeze();
                None
            }
            Self::Slow => Some(std::thread::spawn(move || {
                while !fits.load(Ordering::Relaxed) {
                    signal(pid, Signal::SIGSTOP);
                    // The length of the stop is what is measured.
                    std::thread::sleep(STOPPED);
                    signal(pid, Signal::SIGCONT);
                    // As above.
                    std::thread::sleep(RUNNING);
                }
            })),
        };
        Spell {
            pid,
            ended,
            stalling,
        }
    }
}

const STOPPED: Duration = Duration::from_millis(30);
const RUNNING: Duration = Duration::from_millis(10);

impl fmt::Display for Condition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Healthy => "all healthy",
            Self::Slow => "one slow",
            Self::Frozen => "one frozen",
        })
    }
}

/// A condition that lasts. It must end before its server does.
#[derive(Debug)]
pub(super) struct Spell {
    pid: u32,
    ended: Arc<AtomicBool>,
    stalling: Option<JoinHandle<()>>,
}

impl Drop for Spell {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(stalling) = self.stalling.take() {
            // It does nothing that could panic.
            let _ = stalling.join();
        }
        signal(self.pid, Signal::SIGCONT);
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // An error means that the server has ended, and then the run fails by itself.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
