//! The subjects in Rust: each runs in its own process and obeys the orders of `worker_process.rs`. Its
//! handles run on one thread of tokio or on all cores, as the settings say, in addition to the threads that
//! the library itself starts.

mod bare;
mod bare_quorum;
mod crates;
mod cycle;
mod endless;
mod held;
mod libraries;
mod log;
mod pause;
mod pipeline;
mod task;

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::error::Fallible;
use crates::Rest;
use cycle::Limit;
use endless::Cycling;
use log::Log;
use pause::{Pause, Pauses};
use task::Task;

/// One waiter's way to the lock.
trait Handle: Send + Sync + 'static {
    type Held: Send;

    /// Whether its futures block their thread, so that each handle needs one.
    const BLOCKS: bool = false;

    /// Waits for the lock. The error says why the wait failed.
    fn acquire(&self) -> impl Future<Output = Fallible<Self::Held>> + Send;

    /// Asks once.
    fn try_acquire(&self) -> impl Future<Output = Fallible<Option<Self::Held>>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Fallible> + Send;
}

/// `arguments`: the part, then the arguments that all workers have.
pub(crate) fn run(arguments: &[String]) -> Fallible {
    let parsed = arguments.split_first();
    let parsed = parsed.and_then(|(part, rest)| Some((part, Task::parse(rest)?)));
    let (part, task) = parsed.ok_or_else(|| format!("worker {arguments:?}"))?;
    raise_descriptors();
    if part == "bare-pipeline" {
        return pipeline::obey(&task);
    }
    task.runtime()?.block_on(async {
        match part.as_str() {
            "held" => held::obey(&task).await,
            "leasehold" => obey(libraries::shared(&task).await?, &task).await,
            "leasehold-each" => obey(libraries::each(&task).await?, &task).await,
            "rslock" => obey(libraries::rslock(&task, true), &task).await,
            "rslock-impatient" => obey(libraries::rslock(&task, false), &task).await,
            "redlock" => obey(libraries::redlock(&task), &task).await,
            "bare" => obey(bare::handles(&task).await?, &task).await,
            "bare-quorum" => obey(bare_quorum::handles(&task).await?, &task).await,
            "bare-crate" => obey(crates::poppers(&task).await?, &task).await,
            "crate-all" => obey(crates::keys(&task, Rest::Awaited).await?, &task).await,
            "crate-majority" => obey(crates::keys(&task, Rest::Background).await?, &task).await,
            "crate-impatient" => obey(crates::keys(&task, Rest::Dropped).await?, &task).await,
            _ => Err(format!("there is no worker {part:?}").into()),
        }
    })?;
    // Waiters are still at work, and their results are not needed.
    std::process::exit(0);
}

async fn obey<H: Handle>(handles: Vec<H>, task: &Task) -> Fallible {
    let log = Arc::new(Log::new(task.waiters));
    let mut orders = orders();
    let mut handles: Vec<Arc<H>> = handles.into_iter().map(Arc::new).collect();
    let mut held = None;
    let mut cycling = None;
    while let Some(order) = orders.recv().await {
        let own = handles.get(task.own()).unwrap_or_default();
        if let Some(limit) = Limit::parse(&order) {
            say_json(&cycle::run(own, limit).await?)?;
            continue;
        }
        let (verb, span) = order.split_once(' ').unwrap_or((&order, "0"));
        let span = Duration::from_millis(span.parse()?);
        let answer = match (verb, handles.as_slice()) {
            ("cycle-on", _) => {
                cycling = Some(Cycling::start(own, span).await?);
                "cycling".into()
            }
            ("watch", _) => {
                let cycling = cycling.as_ref().ok_or("watch before cycle-on")?;
                say_json(&cycling.watch(span).await)?;
                continue;
            }
            ("mark", _) => log.now().to_string(),
            ("finish", _) => serde_json::to_string(&log.finish())?,
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
                for handle in handles.split_off(1) {
                    let log = Arc::clone(&log);
                    tokio::spawn(async move { drop(patiently(&*handle, &log).await) });
                }
                "waiting".into()
            }
            _ => return Err(format!("the order {order:?}, now").into()),
        };
        say(&answer)?;
    }
    Ok(())
}

fn say(answer: &str) -> Fallible {
    Ok(writeln!(std::io::stdout().lock(), "{answer}")?)
}

fn say_json(answer: &impl Serialize) -> Fallible {
    say(&serde_json::to_string(answer)?)
}

async fn contend<H: Handle>(
    waiter: usize,
    handle: Arc<H>,
    log: Arc<Log>,
    mut pause: Pause,
    hold: Duration,
    away: Duration,
) -> Fallible {
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

async fn patiently<H: Handle>(handle: &H, log: &Log) -> H::Held {
    loop {
        match handle.acquire().await {
            Ok(held) => return held,
            Err(why) => log.gives_up(&why),
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
