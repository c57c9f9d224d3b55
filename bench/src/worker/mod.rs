//! The subjects in Rust: each runs in its own process and obeys the orders of `worker_process.rs`. Its
//! handles run on one thread of tokio or on all cores, as the settings say, in addition to the threads that
//! the library itself starts.

mod cycle;
pub(crate) mod held;
mod leasehold;
mod log;
mod pause;
mod task;

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::error::Fallible;
use crate::peers;
use log::Log;
use pause::{Pause, Pauses};
pub(crate) use task::Task;

/// One waiter's way to the lock.
pub(crate) trait Handle: Send + Sync + 'static {
    type Held: Send;

    /// Waits for the lock. The error says why the wait failed. By default, it asks once.
    fn acquire(&self) -> impl Future<Output = Fallible<Self::Held>> + Send {
        async { Ok(self.try_acquire().await?.ok_or("busy")?) }
    }

    /// Asks once.
    fn try_acquire(&self) -> impl Future<Output = Fallible<Option<Self::Held>>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Fallible> + Send;
}

/// `arguments`: the part, then the arguments that all workers have.
pub(crate) fn run(arguments: &[String]) -> Fallible {
    let parsed = arguments.split_first();
    let parsed = parsed.and_then(|(part, rest)| Some((part, Task::parse(rest)?)));
    let (part, task) = parsed.ok_or_else(|| format!("worker {arguments:?}"))?;
    task.runtime()?.block_on(async {
        match part.split_once('/') {
            Some((store, part)) if part.starts_with("leasehold") => {
                leasehold::run(store, part, &task).await
            }
            _ => peers::run(part, &task).await,
        }
    })?;
    // Waiters are still at work, and their results are not needed.
    std::process::exit(0);
}

/// Obeys the orders with these handles, one for each key of the task.
pub(crate) async fn obey<H: Handle>(handles: Vec<H>, task: &Task) -> Fallible {
    let log = Arc::new(Log::new(task.waiters));
    let mut orders = orders();
    let mut handles: Vec<Arc<H>> = handles.into_iter().map(Arc::new).collect();
    let mut held = None;
    while let Some(order) = orders.recv().await {
        let own = handles.get(task.own()).unwrap_or_default();
        let (verb, span) = order.split_once(' ').unwrap_or((&order, "0"));
        let span = Duration::from_millis(span.parse()?);
        let answer = match (verb, handles.as_slice()) {
            ("cycle-for", _) => serde_json::to_string(&cycle::run(own, span).await?)?,
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
