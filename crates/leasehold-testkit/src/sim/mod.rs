//! The real client, keeper, acquisition and quorum in a simulated world: servers and clients with
//! clocks of their own, a network between them, programs that take locks, and weather.
//!
//! All of it follows from one seed. What happens is written down as a history on a timeline that no
//! part of the world can read; the invariants are judged from the history alone, afterwards.

mod chance;
mod checks;
mod connection;
mod execution;
mod faults;
mod gate;
mod grants;
mod grip;
mod hearing;
mod history;
mod ledger;
mod machine;
mod mix;
mod pace;
mod parcel;
mod plan;
mod remote_member;
mod request;
mod run;
mod seeds;
mod server;
mod snapshots;
mod timeline;
mod trace;
mod weather;
mod wire;
mod work;
mod workload;
mod world;

pub use checks::Violation;
pub use faults::{FaultClass, Faults};
pub use grants::Grants;
pub use run::{Outcome, run};
pub use seeds::{Summary, run_all};
