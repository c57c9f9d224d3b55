//! The command line, run as its users run it: real processes, signals, terminals and servers.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod also;
mod bench;
mod doctor;
mod documents;
mod elect;
mod ending;
mod fence;
mod fence_disk;
mod harness;
mod hold;
mod inspect;
mod messages;
mod min_hold;
mod namespaces;
mod nested;
mod nesting;
mod nobody;
mod once;
mod once_ending;
mod once_readers;
mod processes;
mod pty;
mod redis;
mod redis_bench;
mod redis_break;
mod redis_doctor;
mod redis_elect;
mod redis_handles;
mod redis_hold;
mod redis_members;
mod redis_min_hold;
mod redis_once;
mod redis_py;
mod redis_queue;
mod redis_together;
mod signals;
mod stores;
mod terminal;
mod waiting;
