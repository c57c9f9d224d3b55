use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::skip;
use crate::step::{answer, succeed};
use crate::workspace::Workspace;

/// A package of Python, at the version that the tests know.
#[derive(Debug)]
struct Library {
    package: &'static str,
    module: &'static str,
    version: &'static str,
    /// Its tests do not run if any of these names is skipped.
    unless: &'static [&'static str],
}

/// The most used libraries of locks for Redis and for ZooKeeper, and a server with the API of S3.
const LIBRARIES: [Library; 3] = [
    Library {
        package: "redis",
        module: "redis",
        version: "8.1.0",
        unless: &["redis-py", "redis"],
    },
    Library {
        package: "kazoo",
        module: "kazoo.version",
        version: "2.11.0",
        unless: &["kazoo", "zookeeper"],
    },
    Library {
        package: "moto[s3,server]",
        module: "moto",
        version: "5.2.1",
        unless: &["moto"],
    },
];

fn wanted(skipped: &[String]) -> impl Iterator<Item = &'static Library> {
    LIBRARIES
        .iter()
        .filter(|library| !skip::skips_any(skipped, library.unless))
}

/// Whether a test needs Python.
pub(crate) fn is_wanted(skipped: &[String]) -> bool {
    wanted(skipped).next().is_some()
}

/// The interpreter of an environment of its own, so that nothing is installed system-wide.
pub(crate) fn interpreter(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("bin/python")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("test-venv")
}

/// Whether the environment is there, works, and has the versions asked for.
pub(crate) fn is_ready(workspace: &Workspace, skipped: &[String]) -> bool {
    wanted(skipped).all(|library| has(workspace, library))
}

fn has(workspace: &Workspace, library: &Library) -> bool {
    let program = format!("import {0}; print({0}.__version__)", library.module);
    answer(Command::new(interpreter(workspace)).args(["-c", &program]))
        .is_some_and(|version| version == library.version)
}

/// Whether python can make environments: Debian splits that part off.
pub(crate) fn can_make_environments() -> bool {
    answer(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_some()
}

/// Makes the environment anew.
pub(crate) fn install(workspace: &Workspace, skipped: &[String]) -> Result<(), String> {
    let folder = folder(workspace);
    succeed(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder)
            .stdin(Stdio::null()),
    )?;
    succeed(
        Command::new(interpreter(workspace))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-input",
            ])
            .args(
                wanted(skipped).map(|library| format!("{}=={}", library.package, library.version)),
            )
            .stdin(Stdio::null()),
    )?;
    match wanted(skipped).find(|library| !has(workspace, library)) {
        None => Ok(()),
        Some(Library {
            module, version, ..
        }) => Err(format!(
            "{} was installed, and still cannot import {module} {version}",
            folder.display()
        )),
    }
}
