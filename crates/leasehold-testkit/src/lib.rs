#![doc = include_str!("../README.md")]

pub mod contract;
pub mod faults;
pub mod harness;
#[cfg(feature = "internal")]
#[doc(hidden)]
pub mod servers;
#[cfg(feature = "internal")]
#[doc(hidden)]
pub mod telemetry;

#[cfg(feature = "internal")]
mod fuzz_seeds;
#[cfg(feature = "internal")]
mod processes;
mod programs;
#[cfg(feature = "internal")]
mod shifted_clock;
#[cfg(feature = "internal")]
mod until;
mod virtual_time;
mod waiting;

#[cfg(feature = "internal")]
#[doc(hidden)]
pub use {
    faults::CrashInjector,
    fuzz_seeds::feed_seeds,
    processes::{SecondProcess, reset_ignored_signals, start_on_terminal, written_on},
    shifted_clock::ShiftedClock,
};

pub use faults::{Fault, FaultyStore, StoreCall};
pub use virtual_time::{SeededEntropy, VirtualClock, virtual_env};
#[doc(hidden)]
pub use waiting::until_waiting;

/// Compiles the README's examples as tests of this crate, which may depend on all stores.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The same for the pages of the crates.
#[cfg(doctest)]
#[doc = include_str!("../../leasehold/README.md")]
#[doc = include_str!("../../leasehold-file/README.md")]
#[doc = include_str!("../../leasehold-redis/README.md")]
#[doc = include_str!("../../leasehold-stores/README.md")]
struct CrateReadmes;
