//! Simulated runs of the real engine, codec and scripts.
//!
//! A run has servers ([`leasehold_fakeredis`]), clients that drive a [`leasehold_quorum::Engine`], a
//! network between them, and one virtual clock. The seed determines the whole run. The checks then examine
//! the history of the run; each check reads only the history.

mod agenda;
mod checks;
mod client;
mod driver;
mod faults;
mod guards;
mod history;
mod injector;
mod mutation;
mod network;
mod phases;
mod plan;
mod poller;
mod records;
mod rng;
mod run;
mod server;
mod server_faults;
mod simulation;
mod time;
mod workload;

#[cfg(test)]
mod records_tests;
#[cfg(test)]
mod tests;

pub use checks::Violation;
pub use faults::{FaultKind, Faults};
pub use run::{Outcome, run, run_records};
