use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{ports, until};
use crate::processes::is_stopped;

/// The process of a server, in a directory of its own. The kernel kills it when this process ends for any reason, and
/// dropping it kills it, too.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Option<Child>,
    /// What a message calls it.
    name: &'static str,
    /// The program with its arguments.
    pub(super) command: Vec<String>,
    /// What is added to the environment of this process.
    pub(super) environment: Vec<(&'static str, PathBuf)>,
    ready: Ready,
    /// The signal that ends it.
    pub(super) end: Signal,
    dir: TempDir,
}

/// How a server shows that it is ready.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ready {
    /// It writes this.
    Writes(&'static str),
    /// It gives the right answer at this port.
    Answers(u16, fn(u16) -> bool),
}

impl ServerProcess {
    /// Describes a server with the files in `dir`, and does not start it.
    pub(super) fn new(
        name: &'static str,
        command: impl IntoIterator<Item = impl Into<String>>,
        ready: Ready,
        dir: TempDir,
    ) -> Self {
        Self {
            child: None,
            name,
            command: command.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            ready,
            end: Signal::SIGKILL,
            dir,
        }
    }

    /// Starts it, and returns once it is ready.
    ///
    /// # Errors
    ///
    /// As [`await_ready`](Self::await_ready).
    pub(super) fn start(&mut self) -> io::Result<()> {
        self.launch()?;
        self.await_ready()
    }

    /// Starts it, and does not wait for it.
    pub(super) fn launch(&mut self) -> io::Result<()> {
        let output = File::create(self.log())?;
        let mut bound = Command::new("setpriv");
        bound
            .args(["--pdeathsig", "KILL"])
            .args(&self.command)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output);
        self.child = Some(on_lasting_thread(bound)?);
        Ok(())
    }

    /// Waits until the server is ready.
    ///
    /// # Errors
    ///
    /// If it ended: `AddrInUse` if another process has its port.
    pub(super) fn await_ready(&mut self) -> io::Result<()> {
        let (name, log, ready) = (self.name, self.log(), self.ready);
        let child = self.child.as_mut().expect("a server that was started");
        let mut ended: Option<ExitStatus> = None;
        let mut written = String::new();
        until(&format!("{name} is ready"), || {
            ended = child.try_wait().ok().flatten();
            written = fs::read_to_string(&log).unwrap_or_default();
            ended.is_some()
                || match ready {
                    Ready::Writes(text) => written.contains(text),
                    Ready::Answers(port, is_ready) => is_ready(port),
                }
        });
        let Some(status) = ended else {
            return Ok(());
        };
        self.child = None;
        let kind = match written.to_lowercase().contains("address already in use") {
            true => io::ErrorKind::AddrInUse,
            false => io::ErrorKind::Other,
        };
        let text = format!("{name} ended at once ({status}) and wrote:\n{written}");
        Err(io::Error::new(kind, text))
    }

    /// Starts it again on the same ports, and returns once it is ready.
    pub(super) fn restart(&mut self) {
        // Another process that looks for a free port may have this one for a moment.
        let started = ports::retry_taken_ports(|| {
            self.kill();
            self.start()
        });
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    pub(super) fn kill(&mut self) {
        if self.child.is_none() {
            return;
        }
        if self.end != Signal::SIGKILL {
            self.thaw();
        }
        signal(self.id(), self.end);
        // An error means that it was reaped already.
        let _ = self.child.take().map(|mut child| child.wait());
    }

    pub(super) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    pub(super) fn id(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    pub(super) fn freeze(&self) {
        let stop = |pid| {
            signal(pid, Signal::SIGSTOP);
            until("the server stands still", || is_stopped(pid));
        };
        stop(self.id());
        // It starts no more.
        self.helpers().into_iter().for_each(stop);
    }

    pub(super) fn thaw(&self) {
        for pid in self.helpers().into_iter().chain([self.id()]) {
            signal(pid, Signal::SIGCONT);
        }
    }

    /// Returns its directory.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn log(&self) -> PathBuf {
        self.dir().join(format!("{}.log", self.name))
    }

    /// The processes that it has started.
    fn helpers(&self) -> Vec<u32> {
        let pid = self.id();
        let pids = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let pids = pids.unwrap_or_default();
        let pids = pids.split_whitespace();
        pids.filter_map(|pid| pid.parse().ok()).collect()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Gives a server the methods of its `process`.
macro_rules! is_process {
    ($server:ty) => {
        impl $server {
            /// Returns its process id.
            ///
            /// # Panics
            ///
            /// If it was killed.
            pub fn pid(&self) -> u32 {
                self.process.id()
            }

            /// Stops all processes of the server (`SIGSTOP`), and returns once they are stopped. The kernel still accepts
            /// connections and data for them.
            pub fn freeze(&self) {
                self.process.freeze();
            }

            /// Continues all processes that were stopped (`SIGCONT`).
            pub fn thaw(&self) {
                self.process.thaw();
            }

            /// Ends the server at once, frozen or not. Its ports stay reserved.
            pub fn kill(&mut self) {
                self.process.kill();
            }

            /// Starts it again on the same ports in the same directory, and returns once it answers. Kills it first if it
            /// is running.
            ///
            /// # Panics
            ///
            /// If it cannot be started.
            pub fn restart(&mut self) {
                self.process.restart();
            }
        }
    };
}
pub(super) use is_process;

/// Returns a new directory for the files of a server.
pub(super) fn directory(server: &str) -> io::Result<TempDir> {
    let prefix = format!("leasehold-{server}-");
    tempfile::Builder::new().prefix(&prefix).tempdir()
}

/// Returns the error for a machine without this program.
pub(super) fn missing(program: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!(
            "{program} is not here, and this test needs a real one: run `cargo xtask setup`, which installs it where it may \
             and else says how"
        ),
    )
}

/// Returns the folders in which a shell looks for programs.
pub(super) fn path_folders() -> Vec<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where a user's programs are")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// Returns the first of `folders` that has all of `programs`.
///
/// # Errors
///
/// If there is none. The message says how to install the first program.
pub(super) fn folder_of(
    programs: &[&str],
    folders: impl IntoIterator<Item = PathBuf>,
) -> io::Result<PathBuf> {
    let has_all = |folder: &PathBuf| programs.iter().all(|name| folder.join(name).exists());
    let found = folders.into_iter().find(has_all);
    found.ok_or_else(|| missing(programs[0]))
}

fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // A helper may have ended meanwhile.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

struct SpawnRequest {
    command: Command,
    answer: mpsc::Sender<io::Result<Child>>,
}

/// The kernel sends the "parent death signal" when the *thread* that started the child ends. So one thread,
/// which lives as long as the process, starts all children. A test's own thread ends with the test, and
/// would take down servers that other tests share.
fn on_lasting_thread(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<mpsc::Sender<SpawnRequest>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<SpawnRequest>();
        let thread = std::thread::Builder::new().name("servers".into());
        let started = thread.spawn(move || {
            for mut order in inbox {
                // The answer is lost only if the requesting thread panicked.
                let _ = order.answer.send(order.command.spawn());
            }
        });
        drop(started);
        orders
    });
    let (answer, answered) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts servers could not be started");
    orders
        .send(SpawnRequest { command, answer })
        .map_err(|_| gone())?;
    answered.recv().map_err(|_| gone())?
}
