//! Counts the instructions of the hot paths with callgrind. A busy machine does not change the counts, so
//! the gate uses them to notice a path that became slower.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "it drives clients as a program does, and starts tasks for them"
)]

mod callgrind;
mod path;
mod workload;

pub use callgrind::{annotate, count, profile};
pub use path::{Kind, PATHS, Path};
pub use workload::{VERB, run as run_workload};
