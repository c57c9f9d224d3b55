//! Threads and tasks.

pub mod background;
pub(crate) mod caller_runtimes;
pub(crate) mod socket_reader;
