//! The packages of the command: static binaries, archives, packages for Debian, and what the container image contains.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{answer, cargo, step, succeed};
use crate::workspace::Workspace;

mod check;
mod debian;
mod documents;
mod image;
mod licenses;
mod manual;
mod tools;

pub(crate) use licenses::{Program, write_all as write_licenses};
pub(crate) use tools::{Wheels, add_target};

/// A kind of machine for which there are packages.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// The name of the architecture in Rust, in Linux and in QEMU.
    name: &'static str,
    target: &'static str,
    /// The name of the architecture in Debian and in container images.
    debian: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine {
        name: "x86_64",
        target: "x86_64-unknown-linux-musl",
        debian: "amd64",
    },
    Machine {
        name: "aarch64",
        target: "aarch64-unknown-linux-musl",
        debian: "arm64",
    },
];

/// Builds the packages for the machines in `names`, or for all, and checks each of them.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), String> {
    let known = MACHINES.map(|machine| machine.name);
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!(
            "no packages for {name:?}; choose from {}",
            known.join(", ")
        ));
    }
    let is_chosen =
        |machine: &Machine| names.is_empty() || names.iter().any(|it| it == machine.name);
    let machines: Vec<Machine> = MACHINES.into_iter().filter(is_chosen).collect();

    let folder = Folder::new(workspace)?;
    let wheels = Wheels::of(workspace);
    step("tools", || {
        wheels.install()?;
        for machine in &machines {
            add_target(machine.target)?;
        }
        check::install(workspace, &machines)
    })?;
    let targets: Vec<&str> = machines.iter().map(|machine| machine.target).collect();
    step("documents", || {
        documents::write_all(workspace, &folder, &wheels, &targets)
    })?;
    step("pages", || write_pages(workspace, &folder))?;
    for machine in &machines {
        step(machine.target, || build(workspace, &wheels, machine))?;
        step("archive", || archive(workspace, &folder, machine))?;
        step("debian package", || {
            debian::package(workspace, &folder, machine)
        })?;
    }
    step("image", || image::prepare(workspace, &folder, &machines))?;
    step("checksums", || write_checksums(&folder))?;
    step("check", || check::run(&folder, &machines))?;
    println!("package: {}", folder.dist().display());
    Ok(())
}

/// The folder with everything that this command makes.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    version: String,
}

impl Folder {
    fn new(workspace: &Workspace) -> Result<Self, String> {
        let path = workspace.target().join("packages");
        let manifest = read(&workspace.root().join("Cargo.toml"))?;
        let mut lines = manifest.lines();
        let version = lines.find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
        let version = version.ok_or("Cargo.toml has no version")?.to_owned();
        let folder = Self { path, version };
        for path in [folder.dist(), folder.pages()] {
            make_anew(&path)?;
        }
        Ok(folder)
    }

    /// What is published.
    fn dist(&self) -> PathBuf {
        self.path.join("dist")
    }

    /// Manual pages and completions.
    fn pages(&self) -> PathBuf {
        self.path.join("pages")
    }

    /// What a user reads.
    fn documents(&self) -> PathBuf {
        self.path.join("documents")
    }

    fn archive(&self, machine: &Machine) -> PathBuf {
        self.dist().join(format!("{}.tar.gz", self.name(machine)))
    }

    fn debian_package(&self, machine: &Machine) -> PathBuf {
        let (version, debian) = (&self.version, machine.debian);
        self.dist()
            .join(format!("leasehold_{version}-1_{debian}.deb"))
    }

    fn name(&self, machine: &Machine) -> String {
        format!("leasehold-{}-{}", self.version, machine.target)
    }
}

fn binary(workspace: &Workspace, machine: &Machine) -> PathBuf {
    let folder = workspace.target().join(machine.target);
    folder.join("release/leasehold")
}

fn build(workspace: &Workspace, wheels: &Wheels, machine: &Machine) -> Result<(), String> {
    let mut build = wheels.cargo_zigbuild(
        workspace,
        "zigbuild --release --locked --package leasehold-cli",
    );
    build
        .args(["--target", machine.target])
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    succeed(&mut build)
}

/// Writes the manual pages and the completions, which are the same on all machines.
fn write_pages(workspace: &Workspace, folder: &Folder) -> Result<(), String> {
    let leasehold = || cargo(workspace, "run --quiet --locked --package leasehold-cli --");
    let pages = folder.pages();
    let man = pages.join("man1");
    make_anew(&man)?;
    succeed(leasehold().args(["man", "--write"]).arg(&man))?;
    for (shell, name) in [
        ("bash", "leasehold"),
        ("zsh", "_leasehold"),
        ("fish", "leasehold.fish"),
    ] {
        let script = answer(leasehold().args(["completions", shell]));
        let script = script.ok_or_else(|| format!("`leasehold completions {shell}` failed"))?;
        make_anew(&pages.join(shell))?;
        write(&pages.join(shell).join(name), &(script + "\n"))?;
    }
    manual::write_all(folder)
}

/// Packs what a user needs into one file, for systems without a package of their own.
fn archive(workspace: &Workspace, folder: &Folder, machine: &Machine) -> Result<(), String> {
    let root = folder.path.join("archive");
    make_anew(&root)?;
    let name = folder.name(machine);
    let content = root.join(&name);
    for (from, to) in [
        (folder.documents(), content.clone()),
        (folder.pages(), content.join("share")),
    ] {
        let mut copy = Command::new("cp");
        succeed(copy.arg("-R").arg(from).arg(to))?;
    }
    copy(&binary(workspace, machine), &content.join("leasehold"))?;
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "-czf",
    ]);
    succeed(
        tar.arg(folder.archive(machine))
            .arg("-C")
            .arg(&root)
            .arg(&name),
    )
}

fn write_checksums(folder: &Folder) -> Result<(), String> {
    let dist = folder.dist();
    let files = fs::read_dir(&dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    let mut names: Vec<_> = files.flatten().map(|file| file.file_name()).collect();
    names.sort();
    let sums = answer(Command::new("sha256sum").args(names).current_dir(&dist));
    write(
        &dist.join("SHA256SUMS"),
        &(sums.ok_or("sha256sum failed")? + "\n"),
    )
}

pub(crate) fn make_anew(folder: &Path) -> Result<(), String> {
    // It need not exist.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = fs::copy(from, to);
    copied
        .map(|_| ())
        .map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

pub(crate) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

pub(crate) fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
