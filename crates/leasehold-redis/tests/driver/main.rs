//! The driver against real servers.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod cancelling;
mod cycles;
mod fixture;
mod outages;
mod reading;
