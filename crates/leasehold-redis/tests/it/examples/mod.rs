//! The examples, which `cargo test` builds.

mod late_write;
mod prometheus;
