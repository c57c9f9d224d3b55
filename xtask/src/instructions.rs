use std::process::Command;

use crate::Failure;
use crate::programs::VALGRIND;
use crate::setup;
use crate::step::{answer, cargo, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// Builds the program that counts the instructions of the hot paths, and runs it to compare them with the
/// recorded counts. It knows its own arguments.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    ready(workspace)?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = answer(Command::new(rustc).arg("-vV"))
        .ok_or("rustc does not say its version".to_owned())?;
    let mut program = cargo(
        workspace,
        &[
            "run",
            "--quiet",
            "--locked",
            "--release",
            "--package",
            "leasehold-instructions",
            "--",
        ],
    );
    suite::equip(&mut program, workspace)?;
    program
        .env(
            "LEASEHOLD_INSTRUCTIONS_COUNTS",
            workspace.root().join("bench/instructions/counts.toml"),
        )
        .env("LEASEHOLD_INSTRUCTIONS_RUSTC", compiler(&version))
        .args(arguments);
    Ok(succeed(&mut program)?)
}

/// Makes sure that servers and valgrind are present, and installs them if that is allowed.
pub(crate) fn ready(workspace: &Workspace) -> Result<(), String> {
    setup::run(workspace, &["redis-py", "postgres"].map(str::to_owned))?;
    setup::program(workspace, &VALGRIND)
}

/// What determines the instructions of a program: the release and the target of the compiler.
fn compiler(version: &str) -> String {
    let field = |name: &str| {
        let mut lines = version.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or("?")
            .trim()
    };
    format!("{} {}", field("release:"), field("host:"))
}
