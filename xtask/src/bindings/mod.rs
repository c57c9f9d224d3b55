//! The bindings for other languages: a workspace of their own, so that the other tasks need neither Python nor Node.

mod node;
mod npm;

use crate::Failure;
use crate::step::cargo;
use crate::workspace::Workspace;

/// Builds, tests and packs the bindings of the languages in `names`, or all.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), Failure> {
    match names {
        [] => Ok(node::run(workspace)?),
        [name] if name == "node" => Ok(node::run(workspace)?),
        [name, platforms] if name == "node" && platforms == "--all-platforms" => {
            Ok(npm::pack_all(workspace)?)
        }
        _ => Err(Failure::Usage(format!(
            "unknown binding {:?}",
            names.join(" ")
        ))),
    }
}

/// Returns the folder of everything that is made for the bindings.
fn folder(workspace: &Workspace) -> std::path::PathBuf {
    workspace.target().join("bindings")
}

/// Returns a call of cargo in the workspace of the bindings.
fn cargo_bindings(workspace: &Workspace, words: &str) -> std::process::Command {
    let mut command = cargo(workspace, words);
    command
        .current_dir(workspace.root().join("bindings"))
        .env("CARGO_TARGET_DIR", folder(workspace));
    command
}
