use std::process::{Child, Command, Stdio};

use leasehold_testkit::servers::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// This program as a second process with another task. It ends when its input ends, which also happens when
/// the test dies.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn start(arguments: impl IntoIterator<Item = String>) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("this program, once more");
        Self { child }
    }

    /// Stops it immediately. Returns once all its threads are stopped.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        until("the process stands still", || self.stands_still());
    }

    fn stands_still(&self) -> bool {
        let threads = format!("/proc/{}/task", self.pid());
        let threads = std::fs::read_dir(threads).expect("a child of ours");
        let is_stopped = |thread: std::fs::DirEntry| {
            // A thread that has ended in the meantime does nothing, either.
            let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else {
                return true;
            };
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
            state.is_some_and(|state| state.starts_with('T'))
        };
        threads.flatten().all(is_stopped)
    }

    /// Continues the stopped process.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends its input, and waits until it ends.
    pub(crate) fn finish(mut self) {
        drop(self.child.stdin.take());
        let mut ended = None;
        until("the process ends", || {
            ended = self.child.try_wait().expect("a child of ours");
            ended.is_some()
        });
        let status = ended.expect("its end");
        assert!(status.success(), "a process ended with {status}");
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, signal).unwrap_or_else(|error| panic!("{signal}: {error}"));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // This matters only after a failure: a process that finished is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
