//! Lists the public items of the libraries, and compares the lists with the recorded ones.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::{cargo, step, succeed};
use crate::workspace::Workspace;

/// The crates that programs and authors of stores name. The stores export few items of their own.
const CRATES: [&str; 4] = [
    "leasehold-types",
    "leasehold",
    "leasehold-stores",
    "leasehold-testkit",
];

/// The tool, which reads what rustdoc of a nightly Rust writes.
const TOOL: &str = "cargo-public-api@0.52.0";

/// Compares the lists, or records them.
pub(crate) fn run(workspace: &Workspace, is_recording: bool) -> Result<(), String> {
    let tools = workspace.target().join("tools");
    step("tool", || {
        let mut install = cargo(workspace, "install --locked --quiet");
        succeed(install.arg(TOOL).arg("--root").arg(&tools))
    })?;
    let folder = workspace.root().join("docs/development/public-api");
    for name in CRATES {
        step(name, || {
            let (listed, path) = (
                listed(workspace, &tools, name)?,
                folder.join(format!("{name}.txt")),
            );
            let failed = |error| format!("{}: {error}", path.display());
            if is_recording {
                return fs::write(&path, listed).map_err(failed);
            }
            match fs::read_to_string(&path).map_err(failed)? == listed {
                true => Ok(()),
                false => Err(format!(
                    "it differs from {}; `cargo xtask public-api --record`, and `git diff` shows what changed",
                    path.display()
                )),
            }
        })?;
    }
    Ok(())
}

/// Returns the public items of a crate, without implementations of traits that the compiler derives.
fn listed(workspace: &Workspace, tools: &Path, name: &str) -> Result<String, String> {
    let mut path = OsString::from(tools.join("bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo", "public-api", "-sss", "-p", name])
        .current_dir(workspace.root())
        .env("PATH", path)
        // A folder of its own, so that the next build with the usual Rust need not begin again.
        .env("CARGO_TARGET_DIR", workspace.target().join("public-api"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| format!("rustup: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo public-api ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo public-api: {error}"))
}
