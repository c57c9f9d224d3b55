//! What concerns ZooKeeper alone, on real servers.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod access;
mod breaking;
mod clocks;
mod deadline;
mod draws;
mod foreign;
mod gate;
mod members;
mod permits;
mod session;
mod support;
mod trips;
