//! Runs the commands that the README shows, and compares what they print.

use std::path::Path;

#[test]
fn the_readme_tells_the_truth() {
    let locks = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold"));
    let path = std::env::join_paths(program.parent().map(Path::to_path_buf).into_iter().chain(
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()),
    ))
    .unwrap();
    trycmd::TestCases::new()
        .case(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"))
        .env(
            "LEASEHOLD_STORE",
            format!("file://{}", locks.path().display()),
        )
        .env("PATH", path.to_string_lossy())
        .register_bin("leasehold", program)
        .run();
}
