//! The subjects that are Rust: each in a process of its own, under the orders of `worker_process.rs`.
//! All run on one thread of tokio, beside the threads that the library itself starts.

mod bare;
mod leasehold;
mod log;
mod pause;
mod rslock;

use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::LocalSet;

use log::Log;
use pause::Pause;

/// What this program is called with to be a worker.
pub(crate) const VERB: &str = "worker";

/// One waiter's way to the lock.
trait Handle: 'static {
    type Held;

    /// Waits for the lock. The error says why it was given up.
    async fn acquire(&self) -> Result<Self::Held, String>;

    /// Asks once.
    async fn try_acquire(&self) -> Result<Option<Self::Held>, String>;

    async fn release(&self, held: Self::Held) -> Result<(), String>;
}

/// What the command line of a worker says.
#[derive(Debug)]
struct Task {
    settings: String,
    key: String,
    waiters: usize,
    hold: Duration,
    away: Duration,
    ports: Vec<String>,
}

impl Task {
    fn parse(arguments: &[String]) -> Option<Self> {
        let [settings, key, waiters, hold, away, ports @ ..] = arguments else {
            return None;
        };
        Some(Self {
            settings: settings.clone(),
            key: key.clone(),
            waiters: waiters.parse().ok()?,
            hold: Duration::from_micros(hold.parse().ok()?),
            away: Duration::from_micros(away.parse().ok()?),
            ports: ports.to_vec(),
        })
    }

    fn urls(&self) -> Vec<String> {
        let ports = self.ports.iter();
        ports
            .map(|port| format!("redis://127.0.0.1:{port}"))
            .collect()
    }
}

/// `arguments`: the part, then what every worker is told.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let parsed = arguments.split_first();
    let parsed = parsed.and_then(|(part, rest)| Some((part, Task::parse(rest)?)));
    let (part, task) = parsed.ok_or_else(|| format!("worker {arguments:?}"))?;
    raise_descriptors();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async {
        match part.as_str() {
            "leasehold" => obey(leasehold::shared(&task).await?, &task).await,
            "leasehold-each" => obey(leasehold::each(&task).await?, &task).await,
            "rslock" => obey(rslock::handles(&task)?, &task).await,
            "bare" => obey(bare::handles(&task).await?, &task).await,
            _ => Err(format!("there is no worker {part:?}")),
        }
    })?;
    // Waiters are still at work: nobody wants to know what becomes of them.
    std::process::exit(0);
}

async fn obey<H: Handle>(handles: Vec<H>, task: &Task) -> Result<(), String> {
    let log = Rc::new(Log::new(task.waiters));
    let mut orders = orders();
    let mut handles = handles;
    let mut held = None;
    while let Some(order) = orders.recv().await {
        let answer = match (order.as_str(), handles.as_slice()) {
            ("mark", _) => format!("mark {}", log.now()),
            ("finish", _) => log.text(),
            ("take", [first, ..]) => {
                held = Some(first.acquire().await?);
                "taken".into()
            }
            ("second", [_, second, ..]) => match second.try_acquire().await? {
                Some(held) => {
                    second.release(held).await?;
                    "granted".into()
                }
                None => "denied".into(),
            },
            ("give", [first, ..]) => {
                let held = held.take().ok_or("give before take")?;
                first.release(held).await?;
                "given".into()
            }
            ("start", [_, ..]) => {
                for (waiter, handle) in handles.drain(..).enumerate() {
                    let pause = Pause::new()?;
                    let log = Rc::clone(&log);
                    let (hold, away) = (task.hold, task.away);
                    tokio::task::spawn_local(contend(waiter, handle, log, pause, hold, away));
                }
                "started".into()
            }
            ("still", [first, ..]) => {
                held = Some(first.acquire().await?);
                let log = Rc::clone(&log);
                wait_all(handles.split_off(1), &log);
                "waiting".into()
            }
            _ => return Err(format!("the order {order:?}, now")),
        };
        let mut output = std::io::stdout().lock();
        writeln!(output, "{answer}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn contend<H: Handle>(
    waiter: usize,
    handle: H,
    log: Rc<Log>,
    mut pause: Pause,
    hold: Duration,
    away: Duration,
) -> Result<(), String> {
    loop {
        let asked = log.asks(waiter);
        let held = patiently(&handle, &log).await;
        let acquired = log.gets(waiter);
        pause.sleep(hold).await?;
        log.leaves(waiter, asked, acquired);
        handle.release(held).await?;
        pause.sleep(away).await?;
    }
}

/// Lets all of them wait for a lock that somebody else holds for good.
fn wait_all<H: Handle>(handles: Vec<H>, log: &Rc<Log>) {
    for handle in handles {
        let log = Rc::clone(log);
        tokio::task::spawn_local(async move {
            drop(patiently(&handle, &log).await);
        });
    }
}

async fn patiently<H: Handle>(handle: &H, log: &Log) -> H::Held {
    loop {
        match handle.acquire().await {
            Ok(held) => return held,
            Err(why) => log.gives_up(why),
        }
    }
}

/// The lines of the standard input; their end is the end of the worker.
fn orders() -> UnboundedReceiver<String> {
    let (sender, orders) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            // Nobody listens any more once the worker ends.
            let _ = sender.send(line);
        }
    });
    orders
}

/// As many descriptors as this process may have. If it may have no more, a connection that cannot be
/// opened says so.
fn raise_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
