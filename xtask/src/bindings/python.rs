//! The binding for Python: builds it, and runs its tests and type checkers in an environment below the target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::python_tools::{PACKAGES, source, venv};
use super::{build_programs, cargo_bindings, folder, wheel};
use crate::python::Venv;
use crate::setup;
use crate::step::{step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// The parts of the test suite that the tests of Python do not need.
const SKIPPED: [&str; 6] = [
    "redis-py",
    "kazoo",
    "mariadb",
    "moto",
    "systemd",
    "prometheus",
];

/// Builds the binding and tests it. If it `packs`, it also checks the code, and builds the wheel for this platform.
pub(super) fn run(workspace: &Workspace, packs: bool) -> Result<(), String> {
    let venv = venv(workspace);
    install_tools(workspace, &venv)?;
    step("python: build", || {
        build_programs(workspace)?;
        let wheel = wheel::build(workspace, &wheel::Build::Debug)?;
        install(&venv, &wheel)
    })?;
    step("python: types", || check_types(workspace, &venv))?;
    step("python: tests", || test(workspace, &venv))?;
    if !packs {
        return Ok(());
    }
    step("python: clippy", || {
        let words = "clippy --locked --package leasehold-bridge --package leasehold-python --all-targets -- -D warnings";
        let mut clippy = cargo_bindings(workspace, words);
        succeed(clippy.env(wheel::AS_EXTENSION, "1"))
    })?;
    step("python: wheel", || {
        let wheel = wheel::build(workspace, &wheel::Build::Release)?;
        wheel::check(workspace, &wheel)
    })
}

fn install_tools(workspace: &Workspace, venv: &Venv) -> Result<(), String> {
    step("python: tools", || {
        setup::run(workspace, &SKIPPED.map(str::to_owned))?;
        venv.install()
    })
}

/// Compares the binding with other libraries.
pub(super) fn bench(workspace: &Workspace) -> Result<(), String> {
    let venv = venv(workspace);
    install_tools(workspace, &venv)?;
    step("python: build", || {
        install(&venv, &wheel::build(workspace, &wheel::Build::Release)?)
    })?;
    let mut bench = Command::new(venv.program("python"));
    bench
        .arg(source(workspace).join("bench/run.py"))
        // Not from its folder, where the package has no native part.
        .current_dir(folder(workspace))
        .stdin(Stdio::null());
    suite::equip(&mut bench, workspace)?;
    succeed(&mut bench)
}

/// Returns a call of a program of the environment, in the folder of the package.
fn in_source(workspace: &Workspace, venv: &Venv, program: &str, words: &str) -> Command {
    let mut command = Command::new(venv.program(program));
    command
        .args(words.split_whitespace())
        .current_dir(source(workspace))
        .stdin(Stdio::null());
    command
}

fn install(venv: &Venv, wheel: &Path) -> Result<(), String> {
    let mut pip = Command::new(venv.program("python"));
    pip.args([
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ]);
    pip.args(["--no-index", "--no-deps", "--force-reinstall"])
        .arg(wheel);
    succeed(pip.stdin(Stdio::null()))
}

fn check_types(workspace: &Workspace, venv: &Venv) -> Result<(), String> {
    let run = |program: &str, words: &str| {
        let mut checker = in_source(workspace, venv, program, words);
        // Both follow the environment that is first in PATH.
        checker.env("PATH", search_path(venv)?);
        succeed(&mut checker)
    };
    run("mypy", "leasehold tests/typed")?;
    run("pyright", "--warnings")?;
    run(
        "stubtest",
        "leasehold._leasehold --mypy-config-file pyproject.toml",
    )
}

fn search_path(venv: &Venv) -> Result<std::ffi::OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(venv.program("")).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))
}

fn test(workspace: &Workspace, venv: &Venv) -> Result<(), String> {
    let redis_py = sources_of_redis_py(workspace, venv)?;
    let program = |name: &str| workspace.target().join("debug").join(name);
    // Not from its folder, where the package has no native part.
    let mut tests = Command::new(venv.program("python"));
    tests
        .args(["-m", "pytest", "-c"])
        .arg(source(workspace).join("pyproject.toml"))
        .arg(source(workspace).join("tests"))
        .args(["-p", "no:cacheprovider"])
        .current_dir(folder(workspace))
        .stdin(Stdio::null());
    suite::equip(&mut tests, workspace)?;
    tests
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LEASEHOLD_REDIS_PY", redis_py)
        .env("LEASEHOLD_COMMAND", program("leasehold"))
        .env("LEASEHOLD_TEST_SERVERS", program("leasehold-servers"));
    succeed(&mut tests)
}

/// Downloads the source package of redis-py, whose tests the drop-in must pass.
fn sources_of_redis_py(workspace: &Workspace, venv: &Venv) -> Result<PathBuf, String> {
    let package = PACKAGES.iter().find(|it| it.starts_with("redis=="));
    let package = package.ok_or("redis is no package of the tests")?;
    let folder = folder(workspace).join("redis-py");
    let sources = folder.join(package.replace("==", "-"));
    if sources.exists() {
        return Ok(sources);
    }
    let mut pip = Command::new(venv.program("python"));
    pip.args([
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
    ]);
    pip.args(["--no-binary=:all:", "--no-build-isolation", "--dest"]);
    succeed(pip.arg(&folder).arg(package).stdin(Stdio::null()))?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--file"]);
    tar.arg(folder.join(format!("{}.tar.gz", package.replace("==", "-"))));
    succeed(tar.arg("--directory").arg(&folder))?;
    Ok(sources)
}
