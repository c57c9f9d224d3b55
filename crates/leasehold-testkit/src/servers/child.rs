use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};

struct SpawnRequest {
    command: Command,
    answer: mpsc::Sender<io::Result<Child>>,
}

/// Starts `program` so that the kernel kills it when this process ends for any reason. Adds `environment`
/// to that of this process, and writes the output to `log`.
pub(super) fn spawn_bound(
    program: &str,
    arguments: &[String],
    environment: &[(&str, &Path)],
    log: &Path,
) -> io::Result<Child> {
    let output = File::create(log)?;
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", program])
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stderr(output.try_clone()?)
        .stdout(output);
    on_lasting_thread(command)
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
