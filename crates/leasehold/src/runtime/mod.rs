//! Threads and tasks.

pub mod background;
pub(crate) mod per_runtime;
