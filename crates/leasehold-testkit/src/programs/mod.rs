//! Random programs: several clients use a few locks in every way that the library offers, while the network, the servers and the
//! clients fail at random. Afterwards a checker reads the whole history.
//!
//! A seed determines the program and its faults. It does not determine how the processes are scheduled, so a program that failed
//! is run again several times, and the report says how often it failed.

mod checks;
mod client;
mod connections;
mod generate;
mod history;
mod operation;
mod process;
mod run;
mod search;

pub(crate) use process::{JOB, WORKER_ARG, run_client};
pub(crate) use search::search;
