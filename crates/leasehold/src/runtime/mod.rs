//! Threads and tasks.

pub mod background;
