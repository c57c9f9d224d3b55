//! Mutants that cargo-mutants generates, in the modules that only decide (`.cargo/mutants.toml`). Some of them
//! change no behavior that a test could observe, so the result is a list to read, not a check.

use std::path::Path;
use std::process::Command;

use crate::step::{answer, succeed};
use crate::workspace::Workspace;

/// A commit tries one of this many parts, and the lines that it changed.
const PARTS: usize = 66;

/// In seconds.
const RUN_MAX: &str = "120";

/// What `timeout` exits with if it ends its command.
const TIMED_OUT: i32 = 124;

/// Tries the lines that the last commit changed, and part `K/N`; by default, the part for that commit.
pub(crate) fn run(workspace: &Workspace, part: Option<&str>) -> Result<(), String> {
    if answer(Command::new("cargo").args(["mutants", "--version"])).is_none() {
        println!("SKIPPED: cargo-mutants is not installed (cargo install --locked cargo-mutants)");
        return Ok(());
    }
    let folder = workspace.target().join("mutants");
    let tree = folder.join("tree");
    check_out(workspace, &tree)?;
    let diff = folder.join("diff");
    let changed = answer(git(&tree).args(["diff", "HEAD^"])).unwrap_or_default() + "\n";
    std::fs::write(&diff, changed).map_err(|error| format!("{}: {error}", diff.display()))?;
    let part = part.map_or_else(|| part_of_commit(&tree), str::to_owned);
    // In the folder of the workspace, cargo would take the products of one tree for those of the other.
    let products = folder.join("build");
    // The time limit is for mutants, not for the first build.
    let mut build = Command::new("cargo");
    build
        .args(["test", "--workspace", "--lib", "--no-run", "--quiet"])
        .env("CARGO_TARGET_DIR", &products)
        .current_dir(&tree);
    succeed(&mut build)?;
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
        println!("mutants: {what}");
        let mut mutants = Command::new("timeout");
        mutants
            .args([
                RUN_MAX,
                "cargo",
                "mutants",
                "--workspace",
                "--in-place",
                "--baseline=skip",
            ])
            .args(["--timeout", "60", "--no-shuffle", "--colors", "never"])
            .args(option)
            .arg("--output")
            .arg(&folder)
            .env("CARGO_TARGET_DIR", &products)
            .current_dir(&tree);
        let status = mutants.status();
        match status.map_err(|error| format!("timeout: {error}"))?.code() {
            // Some were missed or did not end.
            Some(0 | 2 | 3) => {}
            Some(TIMED_OUT) => println!("mutants: stopped after {RUN_MAX} s"),
            code => return Err(format!("cargo mutants ended with {code:?}")),
        }
    }
    Ok(())
}

/// Checks the last commit out to `tree`, whose place never changes, so that cargo rebuilds only what changed.
pub(crate) fn check_out(workspace: &Workspace, tree: &Path) -> Result<(), String> {
    if !tree.is_dir() {
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--no-checkout"]);
        succeed(clone.arg(workspace.root()).arg(tree))?;
    }
    let commit = answer(git(workspace.root()).args(["rev-parse", "HEAD"]))
        .ok_or("git does not name the last commit")?;
    succeed(git(tree).args(["fetch", "--quiet", "origin", "HEAD"]))?;
    succeed(git(tree).args(["checkout", "--quiet", "--force", "--detach", &commit]))
}

/// Consecutive commits try different parts.
fn part_of_commit(tree: &Path) -> String {
    let count = answer(git(tree).args(["rev-list", "--count", "HEAD"]));
    let count: usize = count
        .and_then(|count| count.parse().ok())
        .unwrap_or_default();
    format!("{}/{PARTS}", count % PARTS)
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    git
}
