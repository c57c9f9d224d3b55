use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use leasehold::Error;
use leasehold::store::background::thread;
use leasehold::store::locked;
use nix::sys::signal::SigSet;

/// The lines for the shell of `--on-acquired` and `--on-lost`.
///
/// They run one after the other, so that the last one belongs to the last change. No lock and no command waits for them.
#[derive(Debug)]
pub(crate) struct Hooks {
    on_acquired: Option<OsString>,
    on_lost: Option<OsString>,
    /// Changes the environment of each hook.
    prepare: fn(&mut Command),
    /// To the thread that runs them; `None` at the end.
    started: Mutex<Option<Sender<Command>>>,
    ended: Mutex<Receiver<()>>,
}

impl Hooks {
    /// These hooks; `warn` gets a text for each that fails.
    pub(crate) fn new(
        on_acquired: Option<OsString>,
        on_lost: Option<OsString>,
        prepare: fn(&mut Command),
        warn: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, Error> {
        let (start, commands) = channel::<Command>();
        let (end, ended) = channel();
        let has_hooks = on_acquired.is_some() || on_lost.is_some();
        if has_hooks {
            thread("leasehold-hook", move || {
                // Signals are for the thread that reads them; a child gets none of this mask.
                let _ = SigSet::all().thread_block();
                for command in commands {
                    if let Some(problem) = run(command) {
                        warn(&problem);
                    }
                }
                // The program may have stopped waiting.
                let _ = end.send(());
            })?;
        }
        Ok(Self {
            on_acquired,
            on_lost,
            prepare,
            started: Mutex::new(has_hooks.then_some(start)),
            ended: Mutex::new(ended),
        })
    }

    /// Runs the hook for an acquired lock.
    pub(super) fn acquired(&self, lock: &str, fence: &str) {
        self.start(
            self.on_acquired.as_deref(),
            "acquired",
            lock,
            ("LEASEHOLD_FENCE", fence),
        );
    }

    /// Runs the hook for a lost lock.
    pub(super) fn lost(&self, lock: &str, reason: &str) {
        self.start(
            self.on_lost.as_deref(),
            "lost",
            lock,
            ("LEASEHOLD_REASON", reason),
        );
    }

    fn start(&self, line: Option<&OsStr>, event: &str, lock: &str, detail: (&str, &str)) {
        let (Some(line), Some(start)) = (line, &*locked(&self.started)) else {
            return;
        };
        let mut hook = Command::new("sh");
        hook.arg("-c").arg(line).stdin(Stdio::null());
        (self.prepare)(&mut hook);
        hook.env("LEASEHOLD_EVENT", event)
            .env("LEASEHOLD_NAME", lock)
            .env(detail.0, detail.1);
        // The thread ends only after this sender.
        let _ = start.send(hook);
    }

    /// Waits until all have ended, but not long. Returns whether they have.
    pub(super) fn finish(&self) -> bool {
        // Without the sender, the thread ends after the last hook.
        let has_hooks = locked(&self.started).take().is_some();
        !has_hooks || locked(&self.ended).recv_timeout(FINISH_MAX).is_ok()
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
