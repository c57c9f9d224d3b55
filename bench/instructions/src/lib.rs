//! Counts the instructions of the hot paths with callgrind. A busy machine does not change the counts, so
//! the gate uses them to notice a path that became slower.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "it drives clients as a program does, starts tasks for them, and ends programs"
)]

mod callgrind;
mod exit;
mod path;
mod workload;

pub use callgrind::{annotate, count, profile};
pub use exit::{Fallible, exit, usage};
pub use path::{Kind, PATHS, Path};
pub use workload::{FREE, VERB, run as run_workload};
