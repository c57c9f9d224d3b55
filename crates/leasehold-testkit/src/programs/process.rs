//! A client in a process of its own: the test program starts itself again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::client::{Assignment, Log, perform};
use super::history::Event;
use crate::harness::OpenAt;

/// The first argument of a test program that starts as a worker.
pub(crate) const WORKER_ARG: &str = "--leasehold-worker";

/// The job of a worker process that carries out one client of a program.
pub(crate) const JOB: &str = "program";

/// Carries out the assignment that comes on standard input, and prints each event.
pub(crate) fn run_client(open_at: OpenAt, address: &str) {
    let assignment: Assignment = serde_json::from_reader(std::io::stdin()).expect("an assignment");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let log = Arc::new(Log::new(assignment.number, std::io::stdout()));
    runtime.block_on(perform(&assignment, open_at(address), log));
}

/// What the operating system does to a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Stop,
    Continue,
    Kill,
}

/// A client that is running.
#[derive(Debug)]
pub(crate) struct ClientProcess {
    child: Child,
    events: Option<JoinHandle<Vec<Event>>>,
}

impl ClientProcess {
    pub(crate) fn start(suite: &str, address: &str, assignment: &Assignment) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        let mut child = Command::new(program)
            .args([WORKER_ARG, suite, address, JOB])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a client");
        let text = serde_json::to_vec(assignment).expect("an assignment has a text form");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&text).expect("the client reads");
        drop(stdin);
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let read = move || {
            let lines = stdout.lines().map_while(Result::ok);
            // A killed client may leave half a line.
            let events = lines.map_while(|line| serde_json::from_str(&line).ok());
            events.collect()
        };
        let events = std::thread::Builder::new().spawn(read).expect("a thread");
        Self {
            child,
            events: Some(events),
        }
    }

    /// Sends a signal, unless the client has ended.
    #[cfg(unix)]
    pub(crate) fn signal(&mut self, signal: Signal) {
        use nix::sys::signal::{Signal as Number, kill};

        if self.has_ended() {
            return;
        }
        let number = match signal {
            Signal::Stop => Number::SIGSTOP,
            Signal::Continue => Number::SIGCONT,
            Signal::Kill => Number::SIGKILL,
        };
        let pid = i32::try_from(self.child.id()).expect("a process id");
        let sent = kill(nix::unistd::Pid::from_raw(pid), number);
        sent.unwrap_or_else(|error| panic!("{signal:?} to {pid}: {error}"));
    }

    #[cfg(not(unix))]
    pub(crate) fn signal(&mut self, _: Signal) {
        panic!("this system has no signals");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the client, and returns what it logged.
    pub(crate) fn finish(mut self) -> Vec<Event> {
        let _ = self.child.kill();
        let events = self.events.take().expect("a reader");
        events.join().expect("the events of the client")
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
