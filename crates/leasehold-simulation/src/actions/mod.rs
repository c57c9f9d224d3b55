//! What happens in a run, as methods of [`Simulation`](crate::state::simulation::Simulation).

pub(crate) mod clients;
pub(crate) mod driver;
pub(crate) mod guards;
pub(crate) mod injector;
pub(crate) mod network;
pub(crate) mod phases;
pub(crate) mod poller;
pub(crate) mod programs;
pub(crate) mod records;
pub(crate) mod server_faults;
pub(crate) mod servers;
