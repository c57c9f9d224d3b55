use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::workspace::Workspace;

/// Runs one named step of a command, and prints its outcome and duration.
pub(crate) fn step(name: &str, work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    println!("==> {name}");
    let started = Instant::now();
    let outcome = work();
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    let seconds = started.elapsed().as_secs_f64();
    println!("==> {name}: {word} ({seconds:.1} s)");
    outcome.map_err(|error| format!("{name} failed: {error}"))
}

/// Returns a call of the cargo that runs this program, with the arguments in `words`, in the workspace and
/// without standard input.
pub(crate) fn cargo(workspace: &Workspace, words: &str) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(words.split(' '))
        .current_dir(workspace.root())
        .stdin(Stdio::null());
    // `cargo run` set these for this program. The build script of ring runs again if they differ, and with it what depends on ring.
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    if std::env::var_os("CARGO_TARGET_DIR").is_some() {
        // It may be relative to another folder than this working directory.
        command.env("CARGO_TARGET_DIR", workspace.target());
    }
    command
}

/// Runs `command` with its output shown.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` ended with {status}", shown(command)))
    }
}

/// Runs `command`, and returns what it wrote to its standard output and whether it succeeded.
pub(crate) fn record(mut command: Command) -> (Vec<u8>, bool) {
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) => (output.stdout, output.status.success()),
        Err(error) => (error.to_string().into_bytes(), false),
    }
}

/// Returns the standard output of `command` if it succeeds; shows nothing.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn shown(command: &Command) -> String {
    let name = std::path::Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(name)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
