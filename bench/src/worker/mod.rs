//! The subjects in Rust: each runs in its own process and obeys the orders of `worker_process.rs`. Its
//! handles run on one thread of tokio or on all cores, as the settings say, in addition to the threads that
//! the library itself starts.

mod bare;
mod bare_quorum;
mod crates;
mod cycle;
mod leasehold;
mod log;
mod pause;
mod pauses;
mod pipeline;
mod redlock;
mod rslock;
mod task;

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use cycle::Limit;
use log::Log;
use pause::Pause;
use pauses::Pauses;
use task::Task;

/// The argument that makes this program a worker.
pub(crate) const VERB: &str = "worker";

/// One waiter's way to the lock.
trait Handle: Send + Sync + 'static {
    type Held: Send;

    /// Whether its futures block their thread, so that each handle needs one.
    const BLOCKS: bool = false;

    /// Waits for the lock. The error says why the wait failed.
    fn acquire(&self) -> impl Future<Output = Result<Self::Held, String>> + Send;

    /// Asks once.
    fn try_acquire(&self) -> impl Future<Output = Result<Option<Self::Held>, String>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), String>> + Send;
}

/// `arguments`: the part, then the arguments that all workers have.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let parsed = arguments.split_first();
    let parsed = parsed.and_then(|(part, rest)| Some((part, Task::parse(rest)?)));
    let (part, task) = parsed.ok_or_else(|| format!("worker {arguments:?}"))?;
    raise_descriptors();
    if part == "bare-pipeline" {
        return pipeline::obey(&task);
    }
    let runtime = task.runtime()?;
    runtime.block_on(async {
        match part.as_str() {
            "leasehold" => obey(leasehold::shared(&task).await?, &task).await,
            "leasehold-each" => obey(leasehold::each(&task).await?, &task).await,
            "rslock" => obey(rslock::handles(&task)?, &task).await,
            "redlock" => obey(redlock::handles(&task)?, &task).await,
            "bare" => obey(bare::handles(&task).await?, &task).await,
            "bare-quorum" => obey(bare_quorum::handles(&task).await?, &task).await,
            "bare-crate" => obey(crates::poppers(&task).await?, &task).await,
            "crate-all" => obey(crates::all(&task).await?, &task).await,
            "crate-majority" => obey(crates::majority(&task).await?, &task).await,
            _ => Err(format!("there is no worker {part:?}")),
        }
    })?;
    // Waiters are still at work, and their results are not needed.
    std::process::exit(0);
}

async fn obey<H: Handle>(handles: Vec<H>, task: &Task) -> Result<(), String> {
    let log = Arc::new(Log::new(task.waiters));
    let mut orders = orders();
    let mut handles: Vec<Arc<H>> = handles.into_iter().map(Arc::new).collect();
    let mut held = None;
    while let Some(order) = orders.recv().await {
        if let Some(limit) = Limit::parse(&order) {
            let busy = handles.get(task.own()).unwrap_or_default();
            say(&cycle::run(busy, limit).await?)?;
            continue;
        }
        let answer = match (order.as_str(), handles.as_slice()) {
            ("mark", _) => format!("mark {}", log.now()),
            ("finish", _) => log.text(),
            ("take", [first, ..]) => {
                held = Some(first.acquire().await?);
                "taken".into()
            }
            ("second", [_, .., second]) => match second.try_acquire().await? {
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
                    let log = Arc::clone(&log);
                    let (hold, away) = (task.hold, task.away);
                    tokio::task::spawn(contend(waiter, handle, log, pause, hold, away));
                }
                "started".into()
            }
            ("still", [first, ..]) => {
                held = Some(first.acquire().await?);
                let log = Arc::clone(&log);
                wait_all(handles.split_off(1), &log);
                "waiting".into()
            }
            _ => return Err(format!("the order {order:?}, now")),
        };
        say(&answer)?;
    }
    Ok(())
}

fn say(answer: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{answer}").map_err(|error| error.to_string())
}

async fn contend<H: Handle>(
    waiter: usize,
    handle: Arc<H>,
    log: Arc<Log>,
    mut pause: Pause,
    hold: Duration,
    away: Duration,
) -> Result<(), String> {
    let mut pauses = Pauses::about(away);
    loop {
        let asked = log.asks(waiter);
        let held = patiently(&*handle, &log).await;
        let acquired = log.gets(waiter);
        pause.sleep(hold).await?;
        log.leaves(waiter, asked, acquired);
        handle.release(held).await?;
        pause.sleep(pauses.next()).await?;
    }
}

/// Makes all handles wait for a lock that another one holds for good.
fn wait_all<H: Handle>(handles: Vec<Arc<H>>, log: &Arc<Log>) {
    for handle in handles {
        let log = Arc::clone(log);
        tokio::task::spawn(async move {
            drop(patiently(&*handle, &log).await);
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
            // The receiver is gone once the worker ends.
            let _ = sender.send(line);
        }
    });
    orders
}

/// Raises the limit of descriptors to the maximum of this process. If that is too low, opening a
/// connection reports it.
fn raise_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
