use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::until;

/// The process of a server. The kernel kills it when this process ends for any reason, and dropping it kills it, too.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    /// What a message calls it.
    name: &'static str,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts the program that the first of `command` names, and does not wait for it. Adds `environment` to that of this
    /// process, and writes the output to `log`.
    pub(super) fn start(
        name: &'static str,
        command: &[String],
        environment: &[(&str, &Path)],
        log: PathBuf,
    ) -> io::Result<Self> {
        let output = File::create(&log)?;
        let mut bound = Command::new("setpriv");
        bound
            .args(["--pdeathsig", "KILL"])
            .args(command)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output);
        let child = on_lasting_thread(bound)?;
        Ok(Self { child, name, log })
    }

    /// Waits until the server is ready, as its output or anything else says.
    ///
    /// # Errors
    ///
    /// If it ended: `AddrInUse` if another process has its port.
    pub(super) fn await_ready(&mut self, mut is_ready: impl FnMut(&str) -> bool) -> io::Result<()> {
        let mut ended: Option<ExitStatus> = None;
        let mut written = String::new();
        until(&format!("{} is ready", self.name), || {
            ended = self.child.try_wait().ok().flatten();
            written = fs::read_to_string(&self.log).unwrap_or_default();
            ended.is_some() || is_ready(&written)
        });
        let Some(status) = ended else {
            return Ok(());
        };
        let kind = match written.to_lowercase().contains("address already in use") {
            true => io::ErrorKind::AddrInUse,
            false => io::ErrorKind::Other,
        };
        let text = format!(
            "{} ended at once ({status}) and wrote:\n{written}",
            self.name
        );
        Err(io::Error::new(kind, text))
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops the process (`SIGSTOP`), and returns once it is stopped. Its kernel still accepts connections and data for it.
    pub(super) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        until("the server stands still", || self.state() == Some('T'));
    }

    /// Continues the stopped process (`SIGCONT`).
    pub(super) fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Waits until it has ended.
    pub(super) fn wait(mut self) {
        // An error means that it was reaped already.
        let _ = self.child.wait();
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).map(Pid::from_raw);
        let sent = pid.map(|pid| kill(pid, signal));
        assert!(matches!(sent, Ok(Ok(()))), "{signal}: {sent:?}");
    }

    /// Returns the letter of the process's state. The name before it, in brackets, may contain anything.
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // An error means that the process has ended already. The wait then only reaps it.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
