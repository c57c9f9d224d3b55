use std::fs;
use std::process::{Command, Stdio};

use crate::Failure;
use crate::programs::VALGRIND;
use crate::python;
use crate::setup;
use crate::step::{cargo, step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// Builds the benchmarks and runs one of them, beside the peers that can be had here. The program
/// knows its own arguments, and says by name which peer it has to do without.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    setup::run(workspace, &["redis-py", "postgres"].map(str::to_owned))?;
    let peers = [
        step("redis-py", || ready_python(workspace)),
        step("node-redlock", || node_packages(workspace)),
        step("valgrind", || setup::program(workspace, &VALGRIND)),
    ];
    for why in peers.into_iter().filter_map(Result::err) {
        println!("one peer less: {why}");
    }
    // By itself: what the benchmarks need of its dependencies must not be in it.
    let command = [
        "build",
        "--quiet",
        "--release",
        "--package",
        "leasehold-cli",
    ];
    step("leasehold", || succeed(&mut cargo(workspace, &command)))?;
    let mut bench = cargo(
        workspace,
        &[
            "run",
            "--quiet",
            "--release",
            "--package",
            "leasehold-bench",
            "--",
        ],
    );
    suite::equip(&mut bench, workspace)?;
    bench.env("LEASEHOLD_BENCH_DIR", workspace.target().join("bench"));
    Ok(succeed(bench.args(arguments))?)
}

fn ready_python(workspace: &Workspace) -> Result<(), String> {
    if python::is_ready(workspace) {
        return Ok(());
    }
    python::install(workspace)
}

/// Installs exactly what the lock file of `bench` says, anew only when it changed.
fn node_packages(workspace: &Workspace) -> Result<(), String> {
    let folder = workspace.target().join("bench/node");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut is_new = !folder.join("node_modules").is_dir();
    for file in ["package.json", "package-lock.json"] {
        let (from, to) = (workspace.root().join("bench").join(file), folder.join(file));
        let wanted = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == wanted) {
            continue;
        }
        is_new = true;
        fs::write(&to, wanted).map_err(failed)?;
    }
    if !is_new {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--no-audit", "--no-fund"])
        .current_dir(&folder)
        .stdin(Stdio::null());
    let installed = succeed(&mut npm);
    if installed.is_err() {
        // The next run tries again.
        let _ = fs::remove_dir_all(folder.join("node_modules"));
    }
    installed
}
