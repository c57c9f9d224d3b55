//! Simulated runs of the real engine, codec and scripts.
//!
//! A run has servers ([`leasehold_fakeredis`]), clients that drive a [`leasehold_quorum::Engine`], a
//! network between them, and one virtual clock. The seed determines the whole run. The checks then examine
//! the history of the run; each check reads only the history.

mod actions;
mod checks;
mod faults;
mod history;
mod mutation;
mod plan;
mod rng;
mod run;
mod state;
mod time;

#[cfg(test)]
mod identities_tests;
#[cfg(test)]
mod records_tests;
#[cfg(test)]
mod scripts_tests;
#[cfg(test)]
mod tests;

pub use checks::Violation;
pub use faults::{FaultKind, Faults};
pub use run::{Outcome, run, run_records};
