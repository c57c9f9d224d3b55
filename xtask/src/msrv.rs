//! Builds the published crates with the oldest Rust that they declare.

use std::fs;
use std::process::Command;

use crate::lint::published;
use crate::step::{step, succeed};
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let version = declared(workspace)?;
    step(&format!("Rust {version}"), || {
        let install = ["toolchain", "install", &version, "--profile", "minimal"];
        succeed(Command::new("rustup").args(install))
    })?;
    let crates = published(&workspace.root().join("crates"))?;
    step("build", || {
        let mut check = Command::new("rustup");
        check
            .args(["run", &version, "cargo", "check", "--locked"])
            .current_dir(workspace.root())
            // A folder of its own, so that the next build with the usual Rust need not begin again.
            .env("CARGO_TARGET_DIR", workspace.target().join("msrv"));
        for name in &crates {
            check.args(["--package", name]);
        }
        succeed(&mut check)
    })
}

/// Returns the version that the manifest of the workspace declares.
fn declared(workspace: &Workspace) -> Result<String, String> {
    let path = workspace.root().join("Cargo.toml");
    let manifest =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.map(|version| version.trim_matches('"').to_owned());
    version.ok_or_else(|| format!("{}: no rust-version", path.display()))
}
