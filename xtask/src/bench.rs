use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::setup;
use crate::step::{cargo, step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// A list of packages in `bench/`, and how to install them next to a copy of it.
struct Packages {
    name: &'static str,
    /// Under `target/bench`; the last file changes whenever what is chosen does.
    folder: &'static str,
    files: &'static [&'static str],
    commands: &'static [&'static [&'static str]],
}

const PACKAGES: [Packages; 2] = [
    Packages {
        name: "peers in Node.js",
        folder: "node",
        files: &["package.json", "package-lock.json"],
        commands: &[&["npm", "ci", "--silent", "--no-audit", "--no-fund"]],
    },
    Packages {
        name: "peers in Python",
        folder: "python",
        files: &["requirements.txt"],
        commands: &[
            &["python3", "-m", "venv", "--clear", "."],
            &[
                "bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-input",
                "--no-deps",
                "--requirement",
                "wanted/requirements.txt",
            ],
        ],
    },
];

/// What the benchmarks can do without, by the names of `--skip`.
const UNNEEDED: [&str; 5] = ["redis-py", "kazoo", "postgres", "etcd", "zookeeper"];

/// Of these, the stores of the section `stores`.
const STORES: [&str; 3] = ["postgres", "etcd", "zookeeper"];

/// Builds the benchmarks and runs the requested ones, next to the peers that can be installed here. The
/// program knows its own arguments, and names each peer that is missing.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    setup::run(workspace, &UNNEEDED.map(str::to_owned))?;
    for store in STORES {
        // The section about the stores names what is missing.
        let others = UNNEEDED.iter().filter(|name| **name != store);
        let others: Vec<String> = others.map(|name| (*name).to_owned()).collect();
        if let Err(why) = setup::run(workspace, &others) {
            println!("left out: {store}: {why}");
        }
    }
    for packages in PACKAGES {
        if let Err(why) = step(packages.name, || packages.install(workspace)) {
            println!("left out: {why}");
        }
    }
    // Built separately, without the features of its dependencies that only the benchmarks need.
    let words = "build --quiet --release --package leasehold-cli";
    let mut command = cargo(workspace, words);
    step("leasehold", || succeed(&mut command))?;
    let words = "run --quiet --release --package leasehold-bench --";
    let mut bench = cargo(workspace, words);
    suite::equip(&mut bench, workspace)?;
    bench.env("LEASEHOLD_BENCH_DIR", workspace.target().join("bench"));
    succeed(bench.args(arguments))
}

impl Packages {
    /// Installs exactly what the files say, and again only if they changed.
    fn install(&self, workspace: &Workspace) -> Result<(), String> {
        let folder = workspace.target().join("bench").join(self.folder);
        // What was installed last; written at the end, so that a failed installation is repeated.
        let marks = folder.join("wanted");
        let wanted = |file: &str| workspace.root().join("bench").join(file);
        let is_there = |file: &&str| {
            fs::read(wanted(file)).ok() == fs::read(marks.join(file)).ok()
                && marks.join("done").is_file()
        };
        if self.files.iter().all(is_there) {
            return Ok(());
        }
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        // An error means that there was none.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        for command in self.commands {
            self.copy(workspace, &folder)?;
            let mut install = Command::new(program(&folder, command[0]));
            install.args(&command[1..]).current_dir(&folder);
            succeed(install.stdin(Stdio::null()))?;
        }
        self.copy(workspace, &folder)?;
        fs::write(marks.join("done"), "").map_err(|error| failed(&marks, error))
    }

    /// Copies the files to the folder that the installers read, and to one that only we read. `venv` clears
    /// both.
    fn copy(&self, workspace: &Workspace, folder: &Path) -> Result<(), String> {
        for folder in [folder.to_owned(), folder.join("wanted")] {
            let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
            fs::create_dir_all(&folder).map_err(failed)?;
            for file in self.files {
                fs::copy(workspace.root().join("bench").join(file), folder.join(file))
                    .map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// A name with a slash is a path in `folder`, which is not our working directory.
fn program(folder: &Path, name: &str) -> std::path::PathBuf {
    if name.contains('/') {
        folder.join(name)
    } else {
        name.into()
    }
}
