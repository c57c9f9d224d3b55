use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::until::until;

/// A process that talks with the test in lines: this program with another task, or another program. It ends when its
/// input ends, which also happens when the test dies.
#[derive(Debug)]
pub struct SecondProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl SecondProcess {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(arguments: impl IntoIterator<Item = String>) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        Self::spawn(Command::new(program).args(arguments))
    }

    /// Starts another program.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output }
    }

    /// Returns a flag that is set when the input of this process ends. For the second process itself.
    ///
    /// # Panics
    ///
    /// If no thread can be started.
    pub fn input_ended() -> Arc<AtomicBool> {
        let ended = Arc::<AtomicBool>::default();
        let told = Arc::clone(&ended);
        let listening = Builder::new().spawn(move || {
            // The input is closed, however reading ends.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            told.store(true, Ordering::SeqCst);
        });
        listening.expect("a thread");
        ended
    }

    /// Sends it a line.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("a process that listens");
    }

    /// Returns its next line.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn hear(&mut self) -> String {
        self.try_hear().expect("the process has ended")
    }

    /// Returns its next line; `None` if it has ended.
    pub(crate) fn try_hear(&mut self) -> Option<String> {
        let mut line = String::new();
        let heard = self.output.read_line(&mut line).expect("a pipe");
        (heard > 0).then(|| line.trim_end().to_owned())
    }

    /// Stops it immediately. Returns once all its threads are stopped.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        until("the process stands still", || is_stopped(self.pid()));
    }

    /// Continues the stopped process.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it as in a crash, paused or not.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("its end");
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends its input, and waits until it ends.
    ///
    /// # Panics
    ///
    /// If it fails, or does not end in time.
    pub fn finish(mut self) {
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

impl Drop for SecondProcess {
    fn drop(&mut self) {
        // This matters only after a failure: a process that finished is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether all threads of a process are stopped.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let is_stopped = |thread: std::fs::DirEntry| {
        // What has ended does nothing, either.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else {
            return true;
        };
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        state.is_some_and(|state| state.starts_with(['T', 'Z']))
    };
    threads.into_iter().flatten().flatten().all(is_stopped)
}
