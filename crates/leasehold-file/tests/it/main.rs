//! The file store on real files, with real processes.
#![expect(
    clippy::disallowed_methods,
    reason = "contenders are threads of their own, and proposals come from the wall clock"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cleanup;
mod contention;
mod crash;
mod crowd;
mod damage;
mod directory;
mod fences;
mod flock;
mod helper;
mod holders;
mod modes;
mod observed;
mod ownership;
mod records;
mod room;
mod store_fixture;
mod waiting;
