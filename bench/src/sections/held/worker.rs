//! A process that takes many locks and then only holds them.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, Error, Guard};
use leasehold_redis::RedisStore;
use serde::{Deserialize, Serialize};

use crate::measure::machine::resident;

/// The argument that makes this program such a worker.
pub(crate) const VERB: &str = "held-worker";

/// How many of the locks have their renewals watched: few, so that watching costs little.
const WATCHED: usize = 200;

/// The number of acquires in progress at a time.
const SIDE_BY_SIDE: usize = 64;

/// The result of taking the locks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) seconds: f64,
    /// In MiB, with one lock and with all.
    pub(super) resident_before: f64,
    pub(super) resident: f64,
}

/// How renewals went.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Watch {
    pub(super) renewals: usize,
    /// Between two of a lock, in seconds.
    pub(super) longest: f64,
    /// How far the deadline still was when a renewal was confirmed, in seconds.
    pub(super) least_left: f64,
    /// Of all locks.
    pub(super) lost: usize,
}

/// Takes `LOCKS TTL URL...`; says when it has them, waits for a line, and answers how they were kept.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let [locks, ttl, urls @ ..] = arguments else {
        return Err(format!("a worker of {arguments:?}"));
    };
    let failed = |error| format!("{arguments:?}: {error}");
    let locks: usize = locks.parse().map_err(failed)?;
    let ttl: u64 = ttl.parse().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let client = runtime.block_on(client(urls)).map_err(text)?;
    runtime.block_on(hold(&client, locks, Duration::from_secs(ttl)))?;
    // To release them all would take as long as to take them.
    std::process::exit(0);
}

async fn client(urls: &[String]) -> Result<Client, Error> {
    let store = RedisStore::new(urls)?;
    if urls.len() > 1 {
        // The servers are new, so no lock was ever held on them.
        store.init().await?;
    }
    Ok(Client::new(store))
}

async fn hold(client: &Client, locks: usize, ttl: Duration) -> Result<(), String> {
    let own = std::process::id();
    let first = client.lock("first").acquire().await.map_err(text)?;
    let resident_before = resident(own)?;
    let began = Instant::now();
    let mut taking = Vec::new();
    for part in 0..SIDE_BY_SIDE {
        let client = client.clone();
        taking.push(tokio::spawn(async move {
            let mut guards = Vec::with_capacity(locks / SIDE_BY_SIDE + 1);
            for at in (part..locks).step_by(SIDE_BY_SIDE) {
                guards.push(client.lock(format!("held/{at}")).ttl(ttl).acquire().await?);
            }
            Ok::<Vec<Guard>, Error>(guards)
        }));
    }
    let mut guards = Vec::with_capacity(locks);
    for part in taking {
        guards.extend(
            part.await
                .map_err(|error| error.to_string())?
                .map_err(text)?,
        );
    }
    say(&Taken {
        seconds: began.elapsed().as_secs_f64(),
        resident_before,
        resident: resident(own)?,
    })?;
    let seen = Arc::new(Mutex::new(Watch {
        renewals: 0,
        longest: 0.0,
        least_left: ttl.as_secs_f64(),
        lost: 0,
    }));
    for guard in guards.iter().step_by((locks / WATCHED).max(1)) {
        tokio::spawn(watch(guard.share(), Arc::clone(&seen)));
    }
    let asked = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    asked
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let mut watch = lock(&seen).clone();
    watch.lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    say(&watch)?;
    drop(first);
    Ok(())
}

/// The deadline moves by as much as lies between the requests that earned it.
async fn watch(guard: Guard, seen: Arc<Mutex<Watch>>) {
    let Some(mut before) = guard.deadline() else {
        return;
    };
    while let Some(now) = guard.deadline_moved(Some(before)).await {
        if now == before {
            return;
        }
        let left = before.since(SystemClock.now()).as_secs_f64();
        let mut seen = lock(&seen);
        seen.renewals += 1;
        seen.longest = seen.longest.max(now.since(before).as_secs_f64());
        seen.least_left = seen.least_left.min(left);
        before = now;
    }
}

fn lock(seen: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(what: &impl Serialize) -> Result<(), String> {
    let line = serde_json::to_string(what).map_err(|error| error.to_string())?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").map_err(|error| error.to_string())
}

fn text(error: Error) -> String {
    error.to_string()
}
