//! How many instructions the hot paths take, as callgrind counts them: a figure that a busy machine
//! does not move, and by which the gate notices a path that became slower.
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
