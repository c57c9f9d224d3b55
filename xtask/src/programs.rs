use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::postgres;
use crate::python;
use crate::skip;
use crate::step::answer;
use crate::workspace::Workspace;

/// A program that the tests start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The package of Debian and Ubuntu that has it.
    pub(crate) package: &'static str,
    /// The program is unnecessary if this name is skipped with `--skip`.
    unless: &'static str,
    /// Whether the package is unpacked below the target folder, because its installation would start a service.
    pub(crate) is_unpacked: bool,
    pub(crate) purpose: &'static str,
}

/// A line for each program: its name, its package, what it is unnecessary without, `unpacked`, and its purpose.
///
/// `redis-tools` contains the server under the name `redis-check-rdb`. The package `redis-server` would start a
/// system service. `gcc` alone would leave out the headers of the C library.
const PROGRAMS: &str = "\
redis-server    | redis-tools          | redis      |          | the tests start their own Redis servers
python3         | python3-venv         |            |          | clients of redis-py and kazoo contend for the same locks, and moto is an S3
javac           | default-jdk-headless | zookeeper  |          | ZooKeeper runs on Java, and a client of Curator contends for the same locks
postgres        | postgresql           | postgres   |          | the SQL of the manual runs on a server of the tests
pgbouncer       | pgbouncer            | postgres   | unpacked | clients of a pooler work in session mode, and are refused in transaction mode
etcd            | etcd-server          | etcd       | unpacked | the tests start their own etcd ensembles
etcdctl         | etcd-client          | etcd       | unpacked | etcdctl contends for the same locks
prometheus      | prometheus           | prometheus | unpacked | a Prometheus server reads the metrics, and evaluates the alerts and the dashboard
promtool        | prometheus           | prometheus | unpacked | promtool runs the tests of the alerts
cc              | build-essential      |            |          | SQLite is built from C, and so is what steps a server's clock
flock           | util-linux           |            |          | the file store and flock(1) exclude each other
setpriv         | util-linux           |            |          | a test runs as another user, or loses its parent
prlimit         | util-linux           |            |          | a test makes the writes of another process fail
mariadbd        | mariadb-server-core  | mariadb    |          | the SQL of a recipe runs on a server of the tests
mariadb         | mariadb-client-core  | mariadb    |          | the SQL of a recipe runs on a server of the tests
curl            | curl                 | moto       |          | a recipe writes to S3 with it
systemd-analyze | systemd              | systemd    |          | systemd reads the units of the recipes
script          | bsdutils             |            |          | a test gives the command a terminal";

/// Counts instructions. No test needs it.
pub(crate) const VALGRIND: Program = other(
    "valgrind",
    "valgrind",
    "callgrind counts the instructions of the hot paths",
);

/// Makes manual pages from pages of the documentation.
pub(crate) const LOWDOWN: Program = other(
    "lowdown",
    "lowdown",
    "pages of the documentation become manual pages",
);

/// Renders the manual pages of the packages.
pub(crate) const MAN: Program = other("man", "man-db", "the manual pages are rendered");

/// Runs binaries for another kind of machine.
pub(crate) const QEMU: Program = other(
    "qemu-aarch64-static",
    "qemu-user-static",
    "a binary for another kind of machine runs",
);

/// Reads the units of the packages.
pub(crate) const SYSTEMD: Program =
    other("systemd-analyze", "systemd", "the example units are read");

impl Program {
    /// Reads a line of the list.
    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split('|').map(str::trim);
        Some(Self {
            name: words.next()?,
            package: words.next()?,
            unless: words.next()?,
            is_unpacked: words.next()? == "unpacked",
            purpose: words.next()?,
        })
    }

    /// The packages with its libraries, which are unpacked with it.
    pub(crate) fn libraries(&self) -> &'static [&'static str] {
        match self.name {
            "pgbouncer" => &["libc-ares2", "libevent-2.1-7"],
            _ => &[],
        }
    }
}

/// A program that no test needs.
const fn other(name: &'static str, package: &'static str, purpose: &'static str) -> Program {
    Program {
        name,
        package,
        unless: "",
        is_unpacked: false,
        purpose,
    }
}

/// Whether it can be found.
pub(crate) fn has(path: &OsString, program: &Program) -> bool {
    find(path, program.name).is_some()
}

/// The programs that are needed and cannot be found.
pub(crate) fn missing(path: &OsString, skipped: &[String]) -> Vec<Program> {
    let programs = PROGRAMS.lines().filter_map(Program::parse);
    programs
        .filter(|program| !skip::skips_any(skipped, &[program.unless]))
        .filter(|program| program.name != "python3" || python::is_wanted(skipped))
        .filter(|program| !has(path, program))
        .collect()
}

/// The folder for programs that lie elsewhere, or under another name.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
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
    fn skipped_programs_are_not_missing() {
        let names = |skipped: &[&str]| {
            let skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
            let missing = missing(&OsString::new(), &skipped);
            missing
                .iter()
                .map(|program| program.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[]).len(), PROGRAMS.lines().count());
        let always = ["cc", "flock", "setpriv", "prlimit", "script"];
        assert_eq!(
            names(&[
                "redis",
                "postgres",
                "etcd",
                "zookeeper",
                "mariadb",
                "moto",
                "systemd",
                "prometheus"
            ]),
            always
        );
        let without = names(&["redis-py", "kazoo", "moto"]);
        assert_eq!(without[..3], ["redis-server", "javac", "postgres"]);
        assert!(names(&["redis-py"]).contains(&"python3"));
    }

    #[test]
    fn only_executable_files_are_programs() {
        assert!(!is_executable(Path::new("/etc/passwd")));
        assert!(is_executable(Path::new("/bin/sh")));
    }
}
