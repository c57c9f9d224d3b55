//! Environments of Python with packages at fixed versions, so that nothing is installed system-wide.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::skip;
use crate::step::{answer, succeed};
use crate::workspace::Workspace;

/// An environment, and the packages in it.
#[derive(Debug)]
pub(crate) struct Venv {
    folder: PathBuf,
    /// As pip takes them, such as `moto[s3,server]==5.2.1`.
    packages: Vec<String>,
}

/// The most used libraries of locks for Redis and for ZooKeeper, and a server with the API of S3. The tests of a library
/// do not run if any of the names after it is skipped.
const LIBRARIES: [(&str, &[&str]); 3] = [
    ("redis==8.1.0", &["redis-py", "redis"]),
    ("kazoo==2.11.0", &["kazoo", "zookeeper"]),
    ("moto[s3,server]==5.2.1", &["moto"]),
];

impl Venv {
    pub(crate) fn new(
        folder: PathBuf,
        packages: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let packages = packages.into_iter().map(Into::into).collect();
        Self { folder, packages }
    }

    /// Returns the environment of the tests.
    pub(crate) fn of_tests(workspace: &Workspace, skipped: &[String]) -> Self {
        Self::new(workspace.target().join("test-venv"), wanted(skipped))
    }

    /// Returns the path of a program in it.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Whether it works, and has all packages at their versions.
    pub(crate) fn is_ready(&self) -> bool {
        if self.packages.is_empty() {
            return true;
        }
        let installed = answer(self.pip().args(["list", "--format", "freeze"]));
        let installed = installed.unwrap_or_default();
        let is_installed = |package: &String| {
            // The list has the name without its extras.
            let (name, version) = package.split_once("==").unwrap_or_default();
            let name = name.split('[').next().unwrap_or_default();
            let line = format!("{name}=={version}");
            installed.lines().any(|it| it == line)
        };
        self.packages.iter().all(is_installed)
    }

    /// Makes it anew, unless it is ready.
    pub(crate) fn install(&self) -> Result<(), String> {
        if self.is_ready() {
            return Ok(());
        }
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&self.folder);
        succeed(venv.stdin(Stdio::null()))?;
        succeed(self.pip().args(["install", "--quiet"]).args(&self.packages))
    }

    fn pip(&self) -> Command {
        let mut pip = Command::new(self.program("python"));
        pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
        pip.stdin(Stdio::null());
        pip
    }
}

/// Whether a test needs Python.
pub(crate) fn is_wanted(skipped: &[String]) -> bool {
    wanted(skipped).next().is_some()
}

fn wanted(skipped: &[String]) -> impl Iterator<Item = &'static str> {
    let wanted = LIBRARIES.iter();
    let wanted = wanted.filter(|(_, unless)| !skip::skips_any(skipped, unless));
    wanted.map(|(package, _)| *package)
}

/// Whether python can make environments: Debian splits that part off.
pub(crate) fn can_make_environments() -> bool {
    answer(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_some()
}
