//! Processes share a lock on a real PostgreSQL server, and write to a table under its fence. The tests end the server and pause
//! the processes. The workers are this same program.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod cluster;
mod fault;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::faults::Findings;
use libtest_mimic::{Arguments, Failed, Trial};

use cluster::Cluster;
use fault::Fault;

/// How long a test continues with one fault. It always finishes the first round.
const MOMENT: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [worker::VERB, rest @ ..] => worker::main(rest),
        _ => {
            let mut arguments = Arguments::from_args();
            arguments.test_threads.get_or_insert(2);
            let trials = Fault::ALL.map(|fault| {
                let name = format!("faults::{}", fault.test_name());
                Trial::test(name, move || survives(fault, MOMENT).map(drop))
            });
            let promoted = Trial::test(
                "faults::promoted_asynchronous_standby_grants_twice",
                promoted,
            );
            let trials = trials.into_iter().chain([promoted]).collect();
            libtest_mimic::run(&arguments, trials).exit_code()
        }
    }
}

/// Causes `fault` again and again for `span`, and checks that nothing happens that must never happen.
fn survives(fault: Fault, span: Duration) -> Result<String, Failed> {
    let begun = SystemClock.now();
    let (mut rounds, mut found, mut longest) = (0, Findings::default(), Duration::ZERO);
    while rounds == 0 || SystemClock.now().since(begun) < span {
        let mut cluster = Cluster::start(fault.standby());
        loop {
            longest = longest.max(fault.strike(&mut cluster));
            rounds += 1;
            if fault.standby().is_some() || SystemClock.now().since(begun) >= span {
                break;
            }
        }
        let (seen, disorder) = cluster.finish();
        found.add(seen);
        if let Some(disorder) = disorder {
            return Err(disorder.into());
        }
    }
    let summary = format!(
        "{}: {rounds} rounds, {} grants, {} overlaps, {} updates lost without fences, {} stale requests refused, longest time \
         to the next grant {longest:.2?}",
        fault.test_name(),
        found.grants,
        found.overlaps,
        found.plain_updates_lost,
        found.stale_refused
    );
    let mut failures = found.violations();
    if fault == Fault::HolderPauses && found.overlaps == 0 {
        failures.push("a holder was paused, and no overlap was seen: who looked?".into());
    }
    match failures.as_slice() {
        [] => Ok(summary),
        failures => Err(format!("{}\n{summary}", failures.join("\n")).into()),
    }
}

/// `Exclusion::OneServer` ends with the one server: a standby that lags lacks the last grant. The fence still keeps the
/// former holder out, since fences follow the clocks of clients.
fn promoted() -> Result<(), Failed> {
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        let mut cluster = Cluster::start(Some(false));
        fault::promote_a_standby_that_lags(&mut cluster);
        let (found, _) = cluster.finish();
        let others = Findings {
            valid_overlaps: Vec::new(),
            ..found.clone()
        };
        if let [first, ..] = others.violations().as_slice() {
            return Err(first.clone().into());
        }
        if !found.valid_overlaps.is_empty() && found.stale_refused > 0 {
            return Ok(());
        }
    }
    Err(format!("{TRIES} failovers to a standby that lags, and never two valid guards").into())
}
