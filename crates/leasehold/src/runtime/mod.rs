//! Threads and tasks.

pub mod background;
pub(crate) mod caller_runtimes;
