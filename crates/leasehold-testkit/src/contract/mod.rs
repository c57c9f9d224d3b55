//! The contract suite: every numbered obligation of [`leasehold::store::Store`] and of its optional traits as a
//! named test, run by every store.
//!
//! [`Suite::without`] names the optional traits that a store does not have. The output lists the tests
//! of these traits as ignored. A store's whole test file is a [`Suite`] and a call of [`main`].

mod acquire;
mod cancellation;
mod checks;
mod contention;
mod expiry;
mod fencing;
mod fixture;
mod login;
mod modes;
mod network;
mod optional;
mod random_calls;
mod release;
mod renew;
mod runtime;
mod store;
mod trials;
mod waiting;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;

use crate::harness::Suite;
use trials::{Started, programs_trial, trials};

/// Runs the contract for each suite, as the `main` of a test program without the usual harness. The arguments of the
/// program choose tests, as those of any test program do.
pub fn main(suites: &'static [Suite]) -> ExitCode {
    run(suites, std::env::args())
}

/// Does the same with these arguments; the first is the name of the program.
pub fn run(suites: &'static [Suite], arguments: impl IntoIterator<Item = String>) -> ExitCode {
    if worker::run_if_worker(suites) {
        return ExitCode::SUCCESS;
    }
    let mut args = Arguments::from_iter(arguments);
    // Most of the tests wait for a lease to end, and use no core.
    args.test_threads.get_or_insert(4);
    let started: Vec<Arc<Started>> = suites
        .iter()
        .map(|suite| Arc::new(Started::new(*suite)))
        .collect();
    let contracts = started.iter().filter(|it| it.has_contract());
    let programs = suites.iter().map(programs_trial);
    let trials = contracts.flat_map(trials).chain(programs).collect();
    let conclusion = libtest_mimic::run(&args, trials);
    // Ends the servers before the process ends, which would not drop them.
    drop(started);
    conclusion.exit_code()
}
