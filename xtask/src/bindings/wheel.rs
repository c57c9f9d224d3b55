//! The wheels of the Python package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder;
use super::python_tools::{source, venv};
use crate::package::{Program, Wheels, add_target, make_anew, write_licenses};
use crate::python::Venv;
use crate::step::{answer, step, succeed};
use crate::workspace::Workspace;

/// Makes pyo3 build a module that links no libpython. maturin sets it too, so that both share what they build.
pub(super) const AS_EXTENSION: &str = "PYO3_BUILD_EXTENSION_MODULE";

/// A way to build a wheel.
pub(super) enum Build {
    Debug,
    Release,
    /// For a target and the oldest C library that it runs on, with the linker of Zig.
    Zig(&'static str, &'static str),
}

/// The targets of the wheels. The first runs on this machine.
const PLATFORMS: [(&str, &str); 4] = [
    ("x86_64-unknown-linux-gnu", "manylinux_2_17"),
    ("aarch64-unknown-linux-gnu", "manylinux_2_17"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

/// Builds a wheel, and returns its path.
pub(super) fn build(workspace: &Workspace, build: &Build) -> Result<PathBuf, String> {
    let venv = venv(workspace);
    let to = match build {
        Build::Debug => folder(workspace).join("wheels/debug"),
        Build::Release => folder(workspace).join("wheels/here"),
        Build::Zig(target, _) => folder(workspace).join("wheels").join(target),
    };
    make_anew(&to)?;
    write_all_licenses(workspace, build)?;
    let mut maturin = Command::new(venv.program("maturin"));
    maturin
        .args(["build", "--quiet", "--locked", "--out"])
        .arg(&to)
        .current_dir(source(workspace))
        .env("CARGO_TARGET_DIR", folder(workspace))
        .env(AS_EXTENSION, "1")
        .stdin(Stdio::null());
    match build {
        Build::Debug => {}
        Build::Release => {
            maturin.arg("--release");
        }
        Build::Zig(target, oldest) => {
            maturin.args(["--release", "--zig", "--target", target]);
            maturin.args(["--compatibility", oldest]);
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(venv.program("")).chain(std::env::split_paths(&path));
            let path = std::env::join_paths(folders);
            maturin.env("PATH", path.map_err(|error| format!("PATH: {error}"))?);
        }
    }
    succeed(&mut maturin)?;
    let entries = std::fs::read_dir(&to).map_err(|error| format!("{}: {error}", to.display()))?;
    let mut wheels = entries.flatten().map(|entry| entry.path());
    wheels
        .find(|path| path.extension().is_some_and(|it| it == "whl"))
        .ok_or_else(|| format!("maturin left no wheel in {}", to.display()))
}

/// Writes the licenses of the linked crates to where the manifest of the package expects them.
fn write_all_licenses(workspace: &Workspace, build: &Build) -> Result<(), String> {
    let program = Program {
        name: "The Python package leasehold",
        package: "leasehold-python",
        manifest: workspace.root().join("bindings/Cargo.toml"),
    };
    let wheels = Wheels::of(workspace);
    let (zig, targets): (_, &[&str]) = match build {
        Build::Zig(target, _) => (Some(&wheels), &[target]),
        Build::Debug | Build::Release => (None, &[]),
    };
    let to = source(workspace).join("licenses");
    make_anew(&to)?;
    write_licenses(workspace, &program, zig, targets, &to)
}

/// Builds the wheels of all platforms, and checks that for this machine.
pub(super) fn build_all(workspace: &Workspace) -> Result<(), String> {
    step("wheels: tools", || {
        venv(workspace).install()?;
        Wheels::of(workspace).install()?;
        PLATFORMS
            .iter()
            .try_for_each(|(target, _)| add_target(target))
    })?;
    for (number, (target, oldest)) in PLATFORMS.into_iter().enumerate() {
        step(target, || {
            let wheel = build(workspace, &Build::Zig(target, oldest))?;
            println!("{}", wheel.display());
            match number {
                0 => check(workspace, &wheel),
                _ => Ok(()),
            }
        })?;
    }
    Ok(())
}

/// Takes a lock in memory with the wheel, in a fresh environment and without the network.
pub(super) fn check(workspace: &Workspace, wheel: &Path) -> Result<(), String> {
    let fresh = folder(workspace).join("fresh-venv");
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--clear"]).arg(&fresh);
    succeed(python.stdin(Stdio::null()))?;
    let fresh = Venv::new(fresh, [""; 0]);
    let mut pip = Command::new(fresh.program("python"));
    pip.args([
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-index",
    ]);
    succeed(pip.arg(wheel).stdin(Stdio::null()))?;
    let mut program = Command::new(fresh.program("python"));
    program
        .args(["-c", FIRST_LOCK])
        .current_dir(folder(workspace));
    match answer(&mut program) {
        Some(output) if output == "released" => Ok(()),
        output => Err(format!("the wheel takes no lock: {output:?}")),
    }
}

const FIRST_LOCK: &str = "\
import importlib.metadata, leasehold
files = importlib.metadata.files('leasehold')
assert any('crates.txt' in str(file) for file in files), files
assert any(file.name == 'py.typed' for file in files), files
print(leasehold.connect('memory:').lock('hello').acquire().release())
";
