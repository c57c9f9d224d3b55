//! Real servers, the contract suite and faults for the tests of Leasehold.
#![forbid(unsafe_code)]

pub mod contract;
pub mod faults;
/// What the contract suite needs from a store's tests.
pub mod harness;
pub mod servers;
pub mod telemetry;

mod faulty;
mod fuse;
mod seeds;
mod signals;
mod terminal;
mod virtual_time;

mod worker;

pub use faulty::{Call, Fault, FaultyStore};
pub use fuse::Fuse;
pub use seeds::feed_seeds;
pub use signals::reset_ignored_signals;
pub use terminal::{start_on_terminal, written_on};
pub use virtual_time::{SeededEntropy, VirtualClock, virtual_ambient};

/// Compiles the README's examples as tests of this crate, which may depend on all stores.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
