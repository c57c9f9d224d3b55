use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::postgres;
use crate::python;
use crate::step::answer;
use crate::suite;
use crate::workspace::Workspace;

/// A program that the tests start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The package of Debian and Ubuntu that has it.
    pub(crate) package: &'static str,
    pub(crate) purpose: &'static str,
    /// The program is unnecessary if any of these names is skipped with `--skip`.
    unless: &'static [&'static str],
}

const PROGRAMS: [Program; 8] = [
    Program {
        name: "redis-server",
        // Not the package `redis-server`, which starts a system service when it is installed.
        // `redis-tools` contains the same program as `redis-check-rdb`.
        package: "redis-tools",
        purpose: "the tests start their own Redis servers",
        unless: &["redis"],
    },
    Program {
        name: "python3",
        package: "python3-venv",
        purpose: "a redis-py client contends for the same locks",
        unless: &python::UNLESS,
    },
    Program {
        name: "postgres",
        package: postgres::PACKAGE,
        purpose: "the SQL of the manual runs on a PostgreSQL server of the tests' own",
        unless: &["postgres"],
    },
    Program {
        name: "cc",
        // Not `gcc`, which leaves out the headers of the C library.
        package: "build-essential",
        purpose: "SQLite is built from C, and so is what steps a server's clock",
        unless: &[],
    },
    Program {
        name: "flock",
        package: "util-linux",
        purpose: "the file store and flock(1) exclude each other",
        unless: &[],
    },
    Program {
        name: "setpriv",
        package: "util-linux",
        purpose: "a test runs as another user, or loses its parent",
        unless: &[],
    },
    Program {
        name: "prlimit",
        package: "util-linux",
        purpose: "a test has writes of another process fail",
        unless: &[],
    },
    Program {
        name: "script",
        package: "bsdutils",
        purpose: "a test gives the command a terminal",
        unless: &[],
    },
];

/// Counts instructions. No test needs it.
pub(crate) const VALGRIND: Program = Program {
    name: "valgrind",
    package: "valgrind",
    purpose: "callgrind counts the instructions of the hot paths",
    unless: &[],
};

/// Whether it can be found.
pub(crate) fn has(path: &OsString, program: &Program) -> bool {
    find(path, program.name).is_some()
}

/// The programs that are needed and cannot be found.
pub(crate) fn missing(path: &OsString, skipped: &[String]) -> Vec<Program> {
    PROGRAMS
        .into_iter()
        .filter(|program| !suite::skips_any(skipped, program.unless))
        .filter(|program| !has(path, program))
        .collect()
}

/// The folder for programs that lie elsewhere, or under another name.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("test-tools")
}

/// The `PATH` for tests: our own folder, and that of PostgreSQL, after the user's, so that a program
/// the user chose wins.
pub(crate) fn search_path(workspace: &Workspace) -> Result<OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([folder(workspace)]);
    let folders = folders.chain(postgres::folders());
    std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))
}

/// Links `redis-server` to Debian's `redis-check-rdb`: the program behaves according to its name.
pub(crate) fn link_redis(workspace: &Workspace) -> Result<(), String> {
    let path = search_path(workspace)?;
    if find(&path, "redis-server").is_some() {
        return Ok(());
    }
    let Some(program) = find(&path, "redis-check-rdb") else {
        return Ok(());
    };
    let folder = folder(workspace);
    let link = folder.join("redis-server");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // The search above does not find a dangling link, which would be in the way here.
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&program, &link)
        .map_err(|error| format!("{}: {error}", link.display()))?;
    if answer(Command::new(&link).arg("--version")).is_some_and(|text| text.contains("server")) {
        return Ok(());
    }
    let _ = std::fs::remove_file(&link);
    Ok(())
}

fn find(path: &OsString, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file)
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_path_misses_all_but_what_is_skipped() {
        let names = |skipped: &[&str]| {
            let skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
            missing(&OsString::new(), &skipped)
                .iter()
                .map(|program| program.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&[]),
            [
                "redis-server",
                "python3",
                "postgres",
                "cc",
                "flock",
                "setpriv",
                "prlimit",
                "script"
            ]
        );
        let always = ["cc", "flock", "setpriv", "prlimit", "script"];
        assert_eq!(names(&["redis", "postgres"]), always);
        let without_redis_py = names(&["redis-py"]);
        assert_eq!(without_redis_py[..2], ["redis-server", "postgres"]);
        assert_eq!(without_redis_py[2..], always);
    }

    #[test]
    fn a_file_that_cannot_be_run_is_no_program() {
        let folder = std::env::temp_dir().join(format!("xtask-programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        let file = folder.join("tool");
        std::fs::write(&file, "#!/bin/sh\n").expect("writable");
        assert!(!is_executable(&file));
        assert!(is_executable(Path::new("/bin/sh")));
        std::fs::remove_dir_all(&folder).expect("removable");
    }
}
