//! The binding for Node: builds it, and runs its tests below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{build_programs, cargo_bindings, folder};
use crate::package::{copy, make_anew, read};
use crate::setup;
use crate::step::{answer, step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// The parts of the test suite that the tests of Node do not need.
const SKIPPED: [&str; 5] = ["kazoo", "mariadb", "moto", "systemd", "prometheus"];

/// The files of the npm package, besides the native part.
const FILES: [&str; 7] = [
    "README.md",
    "index.cjs",
    "index.d.cts",
    "index.d.mts",
    "index.mjs",
    "lib",
    "package.json",
];

/// Builds the binding and tests it, together with that of `python` if there is one. If it `packs`, it also checks the code.
pub(super) fn run(workspace: &Workspace, packs: bool, python: Option<&Path>) -> Result<(), String> {
    install_tools(workspace)?;
    step("node: build", || build(workspace))?;
    step("node: tests", || test(workspace, python))?;
    if !packs {
        return Ok(());
    }
    step("node: clippy", || {
        let words = "clippy --locked --package leasehold-node --all-targets -- -D warnings";
        succeed(&mut cargo_bindings(workspace, words))
    })
}

fn install_tools(workspace: &Workspace) -> Result<(), String> {
    step("node: tools", || {
        setup::run(workspace, &SKIPPED.map(str::to_owned))?;
        install_libraries(workspace)
    })
}

/// The folder of the tests, with all packages that they use.
fn tests(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("node")
}

fn source(workspace: &Workspace) -> PathBuf {
    workspace.root().join("bindings/node")
}

/// Installs the packages of the tests, unless they are there at their versions.
fn install_libraries(workspace: &Workspace) -> Result<(), String> {
    if answer(Command::new("npm").arg("--version")).is_none() {
        return Err("the binding for Node needs node and npm: install Node 20 or later".to_owned());
    }
    let (tests, locked) = (tests(workspace), "package-lock.json");
    let from = source(workspace).join("tests");
    let installed = tests.join("node_modules/.installed");
    let wanted = read(&from.join(locked))?;
    if read(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    make_anew(&tests)?;
    for name in ["package.json", locked] {
        copy(&from.join(name), &tests.join(name))?;
    }
    let mut ci = Command::new("npm");
    ci.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    succeed(ci.current_dir(&tests).stdin(Stdio::null()))?;
    copy(&from.join(locked), &installed)
}

/// Builds the native part, and the programs that its tests run.
fn build(workspace: &Workspace) -> Result<(), String> {
    let words = "build --locked --package leasehold-node";
    succeed(&mut cargo_bindings(workspace, words))?;
    build_programs(workspace)
}

/// Runs the tests with the libraries.
fn test(workspace: &Workspace, python: Option<&Path>) -> Result<(), String> {
    let tests = lay_out(workspace, "tests", "debug")?;
    let mut node = node(workspace)?;
    node.args(["--test", "--test-concurrency=4"])
        .args(test_files(&tests)?);
    let program = |name: &str| workspace.target().join("debug").join(name);
    node.env("LEASEHOLD_TEST_COMMAND", program("leasehold"))
        .env("LEASEHOLD_TEST_SERVERS", program("leasehold-servers"))
        .env("LEASEHOLD_TEST_PAGE", workspace.root().join("docs/node.md"));
    if let Some(python) = python {
        node.env("LEASEHOLD_TEST_PYTHON_BINDING", python);
    }
    succeed(&mut node)
}

/// Compares the binding with other libraries.
pub(super) fn bench(workspace: &Workspace) -> Result<(), String> {
    install_tools(workspace)?;
    step("node: build", || {
        let words = "build --release --locked --package leasehold-node";
        succeed(&mut cargo_bindings(workspace, words))
    })?;
    let bench = lay_out(workspace, "bench", "release")?;
    succeed(node(workspace)?.arg(bench.join("bench.mjs")))
}

/// Copies the package, its native part of `profile`, and the folder `name` to where the libraries are. Returns the copy of
/// the folder.
fn lay_out(workspace: &Workspace, name: &str, profile: &str) -> Result<PathBuf, String> {
    let tests = tests(workspace);
    let package = tests.join("node_modules/leasehold");
    copy_package(workspace, &package)?;
    let built = folder(workspace).join(profile).join("libleasehold_node.so");
    copy(&built, &package.join("leasehold.node"))?;
    copy_all(&source(workspace).join(name), &tests.join(name))?;
    Ok(tests.join(name))
}

/// Returns a call of Node that finds the servers of the tests.
fn node(workspace: &Workspace) -> Result<Command, String> {
    let mut node = Command::new("node");
    node.current_dir(tests(workspace)).stdin(Stdio::null());
    suite::equip(&mut node, workspace)?;
    Ok(node)
}

/// Copies the npm package without its native part.
pub(super) fn copy_package(workspace: &Workspace, to: &Path) -> Result<(), String> {
    make_anew(to)?;
    FILES.iter().try_for_each(|name| {
        let from = source(workspace).join(name);
        copy_all(&from, &to.join(name))
    })
}

fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    // It need not exist.
    let _ = fs::remove_dir_all(to);
    let mut command = Command::new("cp");
    succeed(command.arg("-R").arg(from).arg(to))
}

fn test_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    match files.is_empty() {
        true => Err(format!("no tests in {}", folder.display())),
        false => Ok(files),
    }
}
