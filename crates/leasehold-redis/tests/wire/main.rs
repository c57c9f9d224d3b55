//! The wire protocol on a server: what the scripts do, and how the codec reads it.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod breaking;
mod exclusive;
mod fixture;
mod foreign;
mod mixed;
mod permits;
mod queue;
mod random;
mod rights;
mod shared;
