//! Scenarios on real servers that need their exact order: the criticisms of Redlock, and waiters that die at a certain moment.
//! The clients that die are this same program.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod critiques;
mod queue;
mod set;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((verb, rest)) if verb == critiques::VERB => critiques::main(rest),
        Some((verb, rest)) if verb == queue::VERB => queue::main(rest),
        _ => {
            let mut arguments = Arguments::from_args();
            // Each of them has ten processes of its own, which mostly wait.
            arguments.test_threads.get_or_insert(3);
            let trials = critiques::trials().chain(queue::trials()).collect();
            libtest_mimic::run(&arguments, trials).exit_code()
        }
    }
}
