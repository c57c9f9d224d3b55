//! Runs the random programs of one suite, and reads what they found.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::bug::Bug;
use crate::step;
use crate::suite::equip;
use crate::workspace::Workspace;

/// How long the programs of one bug run, in seconds.
const SECONDS: &str = "600";

/// How many programs run at once: they wait for leases and use no core meanwhile.
const WIDTH: &str = "6";

/// What the programs found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) promise: String,
    pub(super) after: String,
    /// How many programs began until then.
    pub(super) programs: String,
}

/// Builds the tests of the altered tree, and runs the random programs. `None` if they find nothing.
pub(super) fn search(
    workspace: &Workspace,
    tree: &Path,
    bug: &Bug,
) -> Result<Option<Found>, String> {
    let package = bug.package()?;
    let test = format!("test --quiet --locked -p {package} --test contract");
    let mut build = cargo(workspace, tree, &format!("{test} --no-run"));
    let built = output(&mut build)?;
    if !built.status.success() {
        return Err(format!("does not compile:\n{}", text(&built.stderr)));
    }
    let filter = format!("{}::random_programs", bug.suite);
    let mut run = cargo(workspace, tree, &test);
    run.args(["--", &filter, "--nocapture"]);
    equip(&mut run, workspace)?;
    let settings = [
        ("SECONDS", SECONDS),
        ("WIDTH", WIDTH),
        ("REPEATS", "0"),
        ("SHRINK", "0"),
    ];
    run.envs(settings.map(|(name, value)| (format!("LEASEHOLD_PROGRAMS_{name}"), value)));
    let ran = output(&mut run)?;
    let report = text(&ran.stdout) + &text(&ran.stderr);
    if let Some(found) = read(&report) {
        keep(workspace, bug, &report)?;
        return Ok(Some(found));
    }
    match ran.status.success() && report.contains(" programs from seed ") {
        true => Ok(None),
        false => Err(format!("the programs do not run:\n{report}")),
    }
}

/// Returns a call of cargo in the tree. Its build products have a folder of their own: cargo would take those of the workspace for
/// those of the tree, and the other way round.
fn cargo(workspace: &Workspace, tree: &Path, words: &str) -> Command {
    let mut command = step::cargo(workspace, words);
    command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", workspace.target().join("proof/build"));
    command
}

fn output(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| format!("cargo: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Keeps the whole report, with the program and its history, to be read by hand.
fn keep(workspace: &Workspace, bug: &Bug, report: &str) -> Result<(), String> {
    let folder = workspace.target().join("proof").join("reports");
    let path = folder.join(format!("{}.txt", bug.name));
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, report));
    kept.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the first failure in a report: `seed S broke a promise after T, as program N; ...`, and the promise on the line below.
fn read(report: &str) -> Option<Found> {
    let (_, rest) = report.split_once(" broke a promise after ")?;
    let mut lines = rest.lines();
    let (after, rest) = lines.next()?.split_once(", as program ")?;
    let (programs, _) = rest.split_once(';')?;
    let (promise, _) = lines.next()?.split_once(": ")?;
    Some(Found {
        promise: promise.trim().into(),
        after: after.into(),
        programs: programs.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_names_promise_and_time() {
        let report = "running 1 test\nseed 7 broke a promise after 3.2s, as program 5; its smallest form \
                      fails 0 of 0 times\nexclusion: c0 h1 and c1 h2 were valid at once\n";
        let found = read(report).unwrap();
        assert_eq!(
            (&*found.promise, &*found.after, &*found.programs),
            ("exclusion", "3.2s", "5")
        );
        assert_eq!(read("memory: 12 programs from seed 7 on"), None);
    }
}
