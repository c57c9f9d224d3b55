//! Real servers, the contract suite and faults for the tests of Leasehold.
#![forbid(unsafe_code)]

pub mod contract;
pub mod faults;
/// What the contract suite needs from a store's tests.
pub mod harness;
pub mod servers;
pub mod telemetry;

mod fuzz_seeds;
mod processes;
mod virtual_time;

pub use faults::{CrashInjector, Fault, FaultyStore, StoreCall};
pub use fuzz_seeds::feed_seeds;
pub use processes::{reset_ignored_signals, start_on_terminal, written_on};
pub use virtual_time::{SeededEntropy, VirtualClock, virtual_ambient};

/// Compiles the README's examples as tests of this crate, which may depend on all stores.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
