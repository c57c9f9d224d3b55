//! Clients against real servers.
#![allow(missing_docs, reason = "tests name themselves")]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod breaking;
mod bursts;
mod connections;
mod downgrade;
mod examples;
mod fenced;
mod foreign_queue;
mod holder_identity;
mod inbox;
mod inspection;
mod keys;
mod late_release;
mod observed;
mod peers;
mod proxy;
mod quorum;
mod records;
mod server;
mod short_waits;
mod support;
mod trips;
