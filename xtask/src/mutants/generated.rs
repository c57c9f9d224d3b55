//! Mutants that cargo-mutants generates, in the modules that only decide (`.cargo/mutants.toml`). Some of them
//! change no behavior that a test could observe, so the result is a list to read, not a check.

use super::copy::{Copy, TIMED_OUT, bounded};
use super::{commits, git};
use crate::step::answer;
use crate::workspace::Workspace;

/// A commit tries one of this many parts, and the lines that it changed.
const PARTS: usize = 66;

/// In seconds.
const RUN_MAX: &str = "120";

/// Tries part `K/N`; by default, the part for the current commit.
pub(super) fn run(workspace: &Workspace, part: Option<&str>) -> Result<(), String> {
    let copy = Copy::of(workspace, 0)?;
    if answer(&mut copy.cargo(workspace, "mutants --version")).is_none() {
        println!("SKIPPED: cargo-mutants is not installed (cargo install --locked cargo-mutants)");
        return Ok(());
    }
    let part = part.map_or_else(
        || format!("{}/{PARTS}", commits(workspace) % PARTS),
        str::to_owned,
    );
    let folder = workspace.target().join("mutants");
    let diff = folder.join("diff");
    let changed = git(workspace, "diff HEAD^").unwrap_or_default() + "\n";
    std::fs::write(&diff, changed).map_err(|error| format!("{}: {error}", diff.display()))?;
    for (what, option) in [
        (
            "the lines that the last commit changed",
            ["--in-diff".as_ref(), diff.as_os_str()],
        ),
        (
            &*format!("part {part}"),
            ["--shard".as_ref(), part.as_ref()],
        ),
    ] {
        println!("mutants: generated for {what}");
        let words = "mutants --workspace --in-place --baseline=skip --timeout 60 --no-shuffle --colors never";
        let mut mutants = copy.cargo(workspace, words);
        mutants.args(option).arg("--output").arg(&folder);
        let status = bounded(&mutants, RUN_MAX).status();
        match status.map_err(|error| format!("timeout: {error}"))?.code() {
            // Some were missed or did not end.
            Some(0 | 2 | 3) => {}
            Some(TIMED_OUT) => println!("mutants: stopped after {RUN_MAX} s"),
            code => return Err(format!("cargo mutants ended with {code:?}")),
        }
    }
    Ok(())
}
