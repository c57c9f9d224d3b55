//! Processes share a lock over five real servers. The tests deliberately break these servers, the network
//! and the processes.
//!
//! As a test program it causes each fault for a moment, and plays through the criticisms of Redlock. `cargo
//! xtask faults` runs it for longer, and prints the results. The workers are this same program.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod cluster;
mod critiques;
mod fault;
mod fault_actions;
mod new_disk;
mod queue;
mod row;
mod set;
mod soak;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use leasehold_redis::TrustRules;
use libtest_mimic::{Arguments, Failed, Trial};

use fault::Fault;
use row::Row;
use worker::Way;

/// How long a test continues with one fault. It always finishes the first round.
const MOMENT: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((verb, rest)) if verb == worker::VERB => worker::main(rest),
        Some((verb, rest)) if verb == critiques::VERB => critiques::main(rest),
        Some((verb, rest)) if verb == queue::VERB => queue::main(rest),
        Some((verb, rest)) if verb == soak::VERB => soak::main(rest),
        _ => {
            let mut arguments = Arguments::from_args();
            // Each of them has ten processes of its own, which mostly wait.
            arguments.test_threads.get_or_insert(3);
            let trials = critiques::trials()
                .chain(queue::trials())
                .chain(trials())
                .collect();
            libtest_mimic::run(&arguments, trials).exit_code()
        }
    }
}

fn trials() -> impl Iterator<Item = Trial> {
    let faults = Fault::ALL.iter().copied();
    let survived = faults.clone().map(|fault| {
        let name = format!("faults::{}", fault.test_name());
        Trial::test(name, move || survives(fault, Way::Lock))
    });
    // An election adds an announcement to a lock; these are the faults that affect it.
    let led = [
        Fault::PauseHolder,
        Fault::HalfOpen,
        Fault::SlowAnswers,
        Fault::KillAndForget,
    ];
    let led = led.into_iter().map(|fault| {
        let name = format!("leaders::{}", fault.test_name());
        Trial::test(name, move || survives(fault, Way::Election))
    });
    let forgetful = faults.filter(|fault| fault.makes_a_member_forget());
    let seen = forgetful.map(|fault| {
        let name = format!("without_trust::{}_grants_twice", fault.test_name());
        Trial::test(name, move || without_trust(fault))
    });
    survived.chain(led).chain(seen)
}

/// Checks that nothing happens that must never happen.
fn survives(fault: Fault, way: Way) -> Result<(), Failed> {
    let row = Row::of(fault, (TrustRules::Enforced, way), MOMENT, 1);
    match row.failures().as_slice() {
        [] => Ok(()),
        failures => Err(format!("{}\n{}", failures.join("\n"), row.summary()).into()),
    }
}

/// Checks that this fault needs the trust rules, and that the judges notice it: without the rules the lock
/// is granted twice.
fn without_trust(fault: Fault) -> Result<(), Failed> {
    for seed in 1..=TRIES {
        let row = Row::of(fault, (TrustRules::Logged, Way::Lock), Duration::ZERO, seed);
        if !row.found.valid_overlaps.is_empty() {
            return Ok(());
        }
    }
    Err(format!("{TRIES} rounds without trust, and never two valid guards").into())
}

/// If the machine stalls, a holder may have left before its members come back. A holder that happens to
/// renew its lease at that moment notices immediately. On a busy machine only about one try of ten
/// succeeds, and all of 60 fail once in 500 runs.
const TRIES: u64 = 60;
