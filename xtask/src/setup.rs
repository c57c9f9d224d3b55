use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::postgres;
use crate::programs::{self, Program};
use crate::python::{self, Venv};
use crate::skip;
use crate::step::{answer, step, succeed};
use crate::unpack::{may_unpack, unpack};
use crate::workspace::Workspace;
use crate::zookeeper;

/// Makes sure that the tests find what they need. Installs packages only as root on a system with
/// apt-get; elsewhere it says what is missing. Does nothing if everything is present.
pub(crate) fn run(workspace: &Workspace, skipped: &[String]) -> Result<(), String> {
    programs::link_redis(workspace)?;
    let unpackable = Lacks::find(workspace, skipped)?.unpackable();
    if !unpackable.is_empty() && may_unpack() {
        let folder = programs::folder(workspace);
        step("unpack", || unpack(&folder, &unpackable))?;
    }
    let lacks = Lacks::find(workspace, skipped)?;
    if !lacks.packages().is_empty() {
        if !may_install() {
            return Err(lacks.message());
        }
        let packages: Vec<&str> = lacks.packages().into_iter().collect();
        step("install", || apt_get(&packages, &lacks.message()))?;
        programs::link_redis(workspace)?;
    }
    if lacks.libraries {
        let python = Venv::of_tests(workspace, skipped);
        step("python libraries", || python.install())?;
    }
    if lacks.zookeeper && may_unpack() {
        step("zookeeper", || zookeeper::unpack(workspace))?;
    }
    check(workspace, skipped)
}

/// Makes sure that `program`, which no test needs, is present.
pub(crate) fn program(workspace: &Workspace, program: &Program) -> Result<(), String> {
    if programs::has(&programs::search_path(workspace)?, program) {
        return Ok(());
    }
    let Program {
        name,
        package,
        purpose,
        ..
    } = program;
    let advice = format!(
        "{name} is not here: {purpose}\nOn Debian or Ubuntu: sudo apt-get install --no-install-recommends {package}"
    );
    if !may_install() {
        return Err(advice);
    }
    step("install", || apt_get(&[package], &advice))
}

/// Fails if something is missing, with all of it in the message; installs nothing.
pub(crate) fn check(workspace: &Workspace, skipped: &[String]) -> Result<(), String> {
    let lacks = Lacks::find(workspace, skipped)?;
    if lacks.is_empty() {
        Ok(())
    } else {
        Err(lacks.message())
    }
}

/// What the tests need and cannot find.
#[derive(Debug)]
struct Lacks {
    programs: Vec<Program>,
    /// Python is present, but not the part that creates environments.
    venv: bool,
    /// Libraries for Python.
    libraries: bool,
    /// The jars of ZooKeeper.
    zookeeper: bool,
}

impl Lacks {
    fn find(workspace: &Workspace, skipped: &[String]) -> Result<Self, String> {
        let programs = programs::missing(&programs::search_path(workspace)?, skipped);
        let has_python = programs.iter().all(|program| program.name != "python3");
        let libraries = !Venv::of_tests(workspace, skipped).is_ready();
        let zookeeper =
            !skip::skips_any(skipped, &["zookeeper"]) && !zookeeper::is_ready(workspace);
        Ok(Self {
            programs,
            venv: libraries && has_python && !python::can_make_environments(),
            libraries,
            zookeeper,
        })
    }

    fn is_empty(&self) -> bool {
        self.programs.is_empty() && !self.venv && !self.libraries && !self.zookeeper
    }

    /// The programs whose packages are unpacked.
    fn unpackable(self) -> Vec<Program> {
        let unpacked = self.programs.into_iter();
        unpacked.filter(|program| program.is_unpacked).collect()
    }

    /// Each package that is installed, once, in a fixed order.
    fn packages(&self) -> BTreeSet<&'static str> {
        let venv = self.venv.then_some("python3-venv");
        self.programs
            .iter()
            .filter(|program| !program.is_unpacked)
            .map(|program| program.package)
            .chain(venv)
            .collect()
    }

    fn message(&self) -> String {
        let mut text = String::from("the tests need something that is not here:\n");
        for program in &self.programs {
            text += &format!("  {}: {}\n", program.name, program.purpose);
            if program.is_unpacked {
                let package = program.package;
                text += &format!(
                    "    `cargo xtask setup` unpacks the package {package} where there is apt-get.\n"
                );
            }
        }
        if self.venv {
            text += "  python3 -m venv: libraries for Python are installed in an environment of their own\n";
        }
        if self.zookeeper {
            text += &format!("{}\n", zookeeper::ADVICE);
        }
        if self.libraries {
            text +=
                "  redis-py and kazoo: foreign clients contend for the same locks; moto: an S3\n";
        }
        let packages: Vec<_> = self.packages().into_iter().collect();
        if packages.is_empty() {
            text += "`cargo xtask setup` installs what is missing under the target folder.";
            return text;
        }
        if packages.contains(&postgres::PACKAGE) {
            text += &format!("{}\n", postgres::ADVICE);
        }
        text += &format!(
            "On Debian or Ubuntu: sudo apt-get install --no-install-recommends {}\n\
             Elsewhere: install these programs with the system's package manager.\n\
             Then run `cargo xtask test` again, or leave tests out by name: {}.",
            packages.join(" "),
            skip::options()
        );
        text
    }
}

fn may_install() -> bool {
    let is_root = answer(Command::new("id").arg("-u")).is_some_and(|user| user == "0");
    is_root && answer(Command::new("apt-get").arg("--version")).is_some()
}

fn apt_get(names: &[&str], advice: &str) -> Result<(), String> {
    println!("installing with apt-get: {}", names.join(" "));
    // A list that cannot be refreshed may still be good enough; the install below decides.
    if let Err(error) = succeed(quiet_apt().arg("update")) {
        println!("{error}; going on with the package lists as they are");
    }
    let install = |names: &[&str]| {
        let mut install = quiet_apt();
        succeed(
            install
                .args(["install", "--yes", "--no-install-recommends"])
                .args(names),
        )
    };
    let installed = if names.contains(&postgres::PACKAGE) {
        postgres::install_without_database(names, install)
    } else {
        install(names)
    };
    installed.map_err(|error| format!("{error}\n{advice}"))
}

fn quiet_apt() -> Command {
    let mut command = Command::new("apt-get");
    command
        .args([
            "-qq",
            "-o",
            "Acquire::Retries=3",
            "-o",
            "DPkg::Lock::Timeout=120",
            "-o",
            "Dpkg::Use-Pty=0",
        ])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn message_names_programs_and_their_installation() {
        let lacks = Lacks {
            programs: programs::missing(&OsString::new(), &[]),
            venv: false,
            libraries: true,
            zookeeper: false,
        };
        let text = lacks.message();
        for word in [
            "redis-server:",
            "flock:",
            "python3:",
            "postgres:",
            "etcd:",
            "etcd-client",
            "pgbouncer:",
            "javac:",
            "package prometheus where",
            "--skip prometheus.",
        ] {
            assert!(text.contains(word), "{word} in {text}");
        }
        let command = "apt-get install --no-install-recommends bsdutils build-essential curl default-jdk-headless mariadb-client-core mariadb-server-core postgresql python3-venv redis-tools systemd util-linux\n";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn redis_py_alone_needs_no_package() {
        let lacks = Lacks {
            programs: vec![],
            venv: false,
            libraries: true,
            zookeeper: false,
        };
        assert!(!lacks.is_empty());
        assert!(lacks.packages().is_empty());
        assert!(lacks.message().contains("cargo xtask setup"));
    }
}
