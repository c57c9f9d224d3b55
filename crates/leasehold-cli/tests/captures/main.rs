//! The pictures of the README: what the real program shows on terminals, drawn as SVG.
//!
//! As tests they are drawn from what the program says today, and compared with the files under
//! `docs/`, which are left as they are. `cargo xtask captures` writes these files.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod fixture;
mod keeping;
mod picture;
#[path = "../it/support/processes.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests; a shell is only ended"
)]
mod processes;
mod redactions;
mod redis_scenes;
mod screen;
mod shell;
mod svg;
