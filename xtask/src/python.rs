use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::step::{answer, succeed};
use crate::workspace::Workspace;

/// redis-py, the most used of the foreign lock libraries, at the version that the tests know.
const REDIS_PY: &str = "8.1.0";

/// Its tests need a Redis server too.
pub(crate) const UNLESS: [&str; 2] = ["redis-py", "redis"];

/// The interpreter of an environment of its own, so that nothing is installed system-wide.
pub(crate) fn interpreter(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("bin/python")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("test-venv")
}

/// Whether the environment is there, works, and has the version asked for.
pub(crate) fn is_ready(workspace: &Workspace) -> bool {
    let program = "import redis; print(redis.__version__)";
    answer(Command::new(interpreter(workspace)).args(["-c", program]))
        .is_some_and(|version| version == REDIS_PY)
}

/// Whether python can make environments: Debian splits that part off.
pub(crate) fn can_make_environments() -> bool {
    answer(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_some()
}

/// Makes the environment anew.
pub(crate) fn install(workspace: &Workspace) -> Result<(), String> {
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
            .arg(format!("redis=={REDIS_PY}"))
            .stdin(Stdio::null()),
    )?;
    if is_ready(workspace) {
        Ok(())
    } else {
        Err(format!(
            "{} was installed, and still cannot import redis {REDIS_PY}",
            folder.display()
        ))
    }
}
