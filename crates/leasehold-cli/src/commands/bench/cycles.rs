use std::time::Duration;

use futures_util::future::try_join_all;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::{Client, Guard, Lock, ReleaseOutcome};

use super::cpu_usage::ProcStats;
use super::estimate::Bound;
use super::plan::{Part, Plan};
use super::statistics::{Spread, per_second};
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// Acquires and releases one free lock repeatedly.
#[derive(Debug)]
pub(super) struct OneAtATime {
    pub(super) acquire: Spread,
    pub(super) release: Spread,
    pub(super) cycle: Spread,
    pub(super) per_second: f64,
}

/// Acquires and releases many locks at once.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) cycle: Spread,
    pub(super) per_second: f64,
    pub(super) bound: Bound,
}

/// How long to wait for a store that stopped answering.
const WAIT_MAX: Duration = Duration::from_secs(5);

pub(super) fn lock(client: &Client, name: &str, plan: &Plan) -> Lock {
    client.lock(name).ttl(plan.ttl).wait(WAIT_MAX)
}

pub(super) async fn one_at_a_time(client: &Client, plan: &Plan) -> Result<OneAtATime, Failure> {
    let lock = lock(client, &plan.one(), plan);
    let began = SystemClock.now();
    let cycles = cycles(&lock, plan.end(Part::OneAtATime)).await?;
    let took = SystemClock.now().since(began);
    let spans = |of: fn(&Cycle) -> Duration| spread(cycles.iter().map(of).collect());
    Ok(OneAtATime {
        acquire: spans(|cycle| cycle.acquire)?,
        release: spans(|cycle| cycle.release)?,
        cycle: spans(Cycle::span)?,
        per_second: per_second(cycles.len(), took),
    })
}

/// `alone` is what one at a time took.
pub(super) async fn in_flight(
    client: &Client,
    plan: &Plan,
    alone: Spread,
) -> Result<InFlight, Failure> {
    let locks: Vec<Lock> = plan.many().map(|name| lock(client, &name, plan)).collect();
    let proc_stats = proc_stats()?;
    let began = SystemClock.now();
    let end = plan.end(Part::InFlight);
    let all = try_join_all(locks.iter().map(|lock| cycles(lock, end))).await?;
    let took = SystemClock.now().since(began);
    let cpu_usage = proc_stats.until(&self::proc_stats()?);
    let spans: Vec<Duration> = all.iter().flatten().map(Cycle::span).collect();
    let per_second = per_second(spans.len(), took);
    let cycle = spread(spans)?;
    Ok(InFlight {
        cycle,
        per_second,
        bound: Bound::of(cpu_usage, alone, cycle),
    })
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    acquire: Duration,
    release: Duration,
}

impl Cycle {
    fn span(&self) -> Duration {
        self.acquire + self.release
    }
}

async fn cycles(lock: &Lock, end: BootInstant) -> Result<Vec<Cycle>, Failure> {
    let mut cycles = Vec::new();
    loop {
        let asked = SystemClock.now();
        let guard = lock.acquire().await?;
        let held = SystemClock.now();
        release(guard).await?;
        let freed = SystemClock.now();
        cycles.push(Cycle {
            acquire: held.since(asked),
            release: freed.since(held),
        });
        if freed >= end {
            return Ok(cycles);
        }
    }
}

/// Releases a lock, which must still have been held.
pub(super) async fn release(guard: Guard) -> Result<(), Failure> {
    let key = guard.key().clone();
    match guard.release().await? {
        ReleaseOutcome::Released => Ok(()),
        _ => Err(vanished(key.as_str())),
    }
}

/// Another client, or a restart of the store, took a lock of the measurement away.
pub(super) fn vanished(name: &str) -> Failure {
    let text = format!(
        "lock {name:?} was lost during the measurement: it was broken, or the store lost data"
    );
    Failure::new(ExitCode::LOST, text)
}

pub(super) fn spread(samples: Vec<Duration>) -> Result<Spread, Failure> {
    let nothing = || {
        Failure::new(
            ExitCode::FAILURE,
            "no measurement was completed; try a longer --duration",
        )
    };
    Spread::of(samples).ok_or_else(nothing)
}

pub(super) fn proc_stats() -> Result<ProcStats, Failure> {
    ProcStats::read().map_err(|error| Failure::of("cannot see who uses the CPU", &error))
}
