use std::ffi::OsString;
use std::io;
use std::mem::replace;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use leasehold::Error;
use leasehold::store::background::thread;
use leasehold::store::locked;
use nix::sys::signal::SigSet;

/// The lines for the shell of `--on-acquired` and `--on-lost`.
///
/// They run one after the other, so that the last one belongs to the last change. But a loss is urgent: its hook waits only
/// [`LOST_WAIT`] for the one before. No lock and no command waits for them.
#[derive(Debug)]
pub(crate) struct Hooks {
    on_acquired: Option<Hook>,
    on_lost: Option<Hook>,
    /// Changes the environment of each hook.
    prepare: fn(&mut Command),
    /// Its sender is gone once the last hook has ended.
    last: Mutex<Receiver<()>>,
}

/// One of the two lines.
#[derive(Debug)]
struct Hook {
    line: OsString,
    /// To the thread that runs it.
    starts: Sender<Start>,
}

/// A hook that is to run.
struct Start {
    command: Command,
    /// Its sender is gone once the hook before has ended.
    before: Receiver<()>,
    end: Sender<()>,
}

impl Hooks {
    /// These hooks; `warn` gets a text for each that fails.
    pub(crate) fn new(
        on_acquired: Option<OsString>,
        on_lost: Option<OsString>,
        prepare: fn(&mut Command),
        warn: impl Fn(&str) + Clone + Send + 'static,
    ) -> Result<Self, Error> {
        let hook = |line: Option<OsString>, wait| {
            let warn = warn.clone();
            line.map(|line| Hook::new(line, wait, warn)).transpose()
        };
        Ok(Self {
            on_acquired: hook(on_acquired, None)?,
            on_lost: hook(on_lost, Some(LOST_WAIT))?,
            prepare,
            last: Mutex::new(channel().1),
        })
    }

    /// Runs the hook for an acquired lock.
    pub(super) fn acquired(&self, lock: &str, fence: &str) {
        self.start(
            self.on_acquired.as_ref(),
            "acquired",
            lock,
            ("LEASEHOLD_FENCE", fence),
        );
    }

    /// Runs the hook for a lost lock.
    pub(super) fn lost(&self, lock: &str, reason: &str) {
        self.start(
            self.on_lost.as_ref(),
            "lost",
            lock,
            ("LEASEHOLD_REASON", reason),
        );
    }

    fn start(&self, hook: Option<&Hook>, event: &str, lock: &str, detail: (&str, &str)) {
        let Some(Hook { line, starts }) = hook else {
            return;
        };
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).stdin(Stdio::null());
        (self.prepare)(&mut command);
        command
            .env("LEASEHOLD_EVENT", event)
            .env("LEASEHOLD_NAME", lock)
            .env(detail.0, detail.1);
        let (end, ended) = channel();
        // The thread ends only after this sender.
        let _ = starts.send(Start {
            command,
            before: replace(&mut *locked(&self.last), ended),
            end,
        });
    }

    /// Waits until the last one has ended, but not long. Returns whether it has.
    pub(super) fn finish(&self) -> bool {
        has_ended(&locked(&self.last), Some(FINISH_MAX))
    }
}

impl Hook {
    /// Starts the thread that runs the line. It waits for the hook before, but at most for `wait`.
    fn new(
        line: OsString,
        wait: Option<Duration>,
        warn: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, Error> {
        let (starts, hooks) = channel::<Start>();
        thread("leasehold-hook", move || {
            // Signals are for the thread that reads them; a child gets none of this mask.
            let _ = SigSet::all().thread_block();
            for hook in hooks {
                if !has_ended(&hook.before, wait) {
                    warn("the hook of --on-acquired still runs; --on-lost runs next to it");
                }
                if let Some(problem) = run(hook.command) {
                    warn(&problem);
                }
                drop(hook.end);
            }
        })?;
        Ok(Self { line, starts })
    }
}

/// Waits until the hook with this receiver has ended, but at most for `wait`. Returns whether it has.
fn has_ended(hook: &Receiver<()>, wait: Option<Duration>) -> bool {
    match wait {
        Some(wait) => hook.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected),
        None => hook.recv().is_err(),
    }
}

/// Runs a hook to its end. Returns what went wrong.
fn run(mut hook: Command) -> Option<String> {
    let line = hook.get_args().last().unwrap_or_default().to_owned();
    // stdout belongs to the command.
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let status = stderr.and_then(|stderr| hook.stdout(stderr).status());
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("the hook {line:?} failed: {status}")),
        Err(error) => Some(format!("the hook {line:?} could not run: {error}")),
    }
}

/// How long the end of the program waits for hooks.
const FINISH_MAX: Duration = Duration::from_secs(10);
/// How long the hook for a loss waits for the hook before.
const LOST_WAIT: Duration = Duration::from_secs(2);
