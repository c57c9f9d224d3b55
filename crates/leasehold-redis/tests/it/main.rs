//! Against real servers.
#![allow(missing_docs, reason = "tests name themselves")]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod breaking;
mod broken;
mod card;
mod downgrade;
mod entrance;
mod examine;
mod fenced;
mod foreign_queue;
mod forgetting;
mod healing;
mod heirs;
mod key_sets;
mod late_write;
mod leaders;
mod leases;
mod looks;
mod observed;
mod old_server;
mod peers;
mod permits;
mod presence;
mod prometheus;
mod promises;
mod proxy;
mod queue;
mod readers;
mod records;
mod rollback;
mod semaphore;
mod shared_runtime;
mod short_waits;
mod support;
mod trips;
