//! The command line, run as its users run it: real processes, signals, terminals and servers.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod also;
mod bad_input;
mod bench;
mod documents;
mod ending;
mod exit_codes;
mod harness;
mod messages;
mod nested;
mod nesting;
mod once;
mod permits;
mod processes;
mod pty;
mod redis;
mod redis_bench;
mod redis_members;
mod redis_once;
mod redis_py;
mod redis_queue;
mod redis_together;
mod signals;
mod stores;
mod terminal;
mod waiting;
