//! Installs each package below a folder of its own, and uses what it contains.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{Folder, Machine, documents, image, make_anew, read, write};
use crate::programs::{LOWDOWN, MAN, QEMU, SYSTEMD};
use crate::setup;
use crate::step::{answer, succeed};
use crate::workspace::Workspace;

/// Installs the programs that write the manual pages, and that the checks use.
pub(super) fn install(workspace: &Workspace, machines: &[Machine]) -> Result<(), String> {
    setup::program(workspace, &LOWDOWN)?;
    setup::program(workspace, &MAN)?;
    setup::program(workspace, &SYSTEMD)?;
    if machines.iter().any(is_foreign) {
        setup::program(workspace, &QEMU)?;
    }
    Ok(())
}

fn is_foreign(machine: &Machine) -> bool {
    machine.name != std::env::consts::ARCH
}

pub(super) fn run(folder: &Folder, machines: &[Machine]) -> Result<(), String> {
    for machine in machines {
        println!("checking the packages for {}", machine.name);
        check_debian_package(folder, machine)?;
        check_archive(folder, machine)?;
        check_image(folder, machine)?;
    }
    let mut sums = Command::new("sha256sum");
    succeed(
        sums.args(["--check", "--quiet", "SHA256SUMS"])
            .current_dir(folder.dist()),
    )
}

/// Installs the package with dpkg, and uses its binary, manual pages and units. The tests of the command load its
/// completions.
fn check_debian_package(folder: &Folder, machine: &Machine) -> Result<(), String> {
    let root = folder.path.join("check").join(machine.debian);
    make_anew(&root)?;
    for name in ["info", "updates"] {
        make_anew(&root.join("var/lib/dpkg").join(name))?;
    }
    for name in ["status", "available"] {
        write(&root.join("var/lib/dpkg").join(name), "")?;
    }
    make_anew(&root.join("var/log"))?;
    let mut dpkg = as_root("dpkg");
    dpkg.arg(with("--root=", &root)).arg("--force-architecture");
    succeed(dpkg.arg("--install").arg(folder.debian_package(machine)))?;
    let query = || {
        let mut query = Command::new("dpkg-query");
        query.arg(with("--admindir=", &root.join("var/lib/dpkg")));
        query
    };
    let status = answer(query().args(["--show", "--showformat", "${Status}", "leasehold"]));
    expect(
        "the state of the package",
        status.as_deref(),
        "install ok installed",
    )?;

    let program = root.join("usr/bin/leasehold");
    let version = answer(emulated(machine, &program).arg("--version"));
    let expected = format!("leasehold {}", folder.version);
    expect("the version of the binary", version.as_deref(), &expected)?;

    let files = answer(query().args(["--listfiles", "leasehold"])).unwrap_or_default();
    let files = |end: &str| {
        let files = files.lines().filter(|file| file.ends_with(end));
        files
            .map(|file| root.join(file.trim_start_matches('/')))
            .collect::<Vec<PathBuf>>()
    };
    // cargo-deb refuses a list of files that names none.
    for section in [".1.gz", ".5.gz", ".7.gz"] {
        files(section)
            .iter()
            .try_for_each(|page| check_page(page))?;
    }
    let documents = root.join("usr/share/doc/leasehold");
    documents::check_links(&documents)?;
    let maintainer = answer(query().args(["--show", "--showformat", "${Maintainer}", "leasehold"]));
    let copyright = read(&documents.join("copyright"))?;
    let contact = copyright
        .lines()
        .find_map(|line| line.strip_prefix("Upstream-Contact: "));
    expect("the contact", contact, &maintainer.unwrap_or_default())?;
    let units: Vec<PathBuf> = [".service", ".timer"].into_iter().flat_map(files).collect();
    check_units(&root, &units)
}

/// Renders a manual page. A mistake in it is a warning on stderr.
fn check_page(page: &Path) -> Result<(), String> {
    let mut man = Command::new("man");
    // A page without spaces in a narrow column cannot be justified.
    man.args(["--warnings", "--no-justification", "--local-file"])
        .arg(page);
    let output = output(man.env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && output.stderr.is_empty() && text.contains("NAME") {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "man {}: {}\n{error}{text}",
        page.display(),
        output.status
    ))
}

/// Reads the units with systemd. The installed binary stands in for that of the system.
fn check_units(root: &Path, units: &[PathBuf]) -> Result<(), String> {
    let folder = root.join("units");
    make_anew(&folder)?;
    let program = root.join("usr/bin/leasehold");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]);
    for unit in units {
        let text = read(unit)?.replace("/usr/bin/leasehold", &program.to_string_lossy());
        let file = folder.join(unit.file_name().unwrap_or_default());
        write(&file, &text)?;
        verify.arg(file);
    }
    let output = output(&mut verify)?;
    let error = String::from_utf8_lossy(&output.stderr);
    // It also warns of units of the system.
    let is_ours = |line: &&str| {
        units
            .iter()
            .filter_map(|unit| unit.file_name()?.to_str())
            .any(|name| line.contains(name))
    };
    match error.lines().find(is_ours) {
        None if output.status.success() => Ok(()),
        None => Err(format!("systemd-analyze: {}\n{error}", output.status)),
        Some(line) => Err(format!("systemd-analyze: {line}")),
    }
}

/// Unpacks the archive, and runs its binary.
fn check_archive(folder: &Folder, machine: &Machine) -> Result<(), String> {
    let root = folder.path.join("check").join(machine.target);
    make_anew(&root)?;
    let mut tar = Command::new("tar");
    succeed(
        tar.arg("-xzf")
            .arg(folder.archive(machine))
            .arg("-C")
            .arg(&root),
    )?;
    let content = root.join(folder.name(machine));
    documents::check_links(&content)?;
    let program = content.join("leasehold");
    let version = answer(emulated(machine, &program).arg("--version"));
    let expected = format!("leasehold {}", folder.version);
    expect(
        "the version of the binary in the archive",
        version.as_deref(),
        &expected,
    )
}

/// Runs the program of the image in a root that has only what the Dockerfile copies.
fn check_image(folder: &Folder, machine: &Machine) -> Result<(), String> {
    let root = folder
        .path
        .join("check")
        .join(format!("image-{}", machine.debian));
    make_anew(&root)?;
    let program = image::copy_to(folder, machine, &root)?;
    let inside = || -> Result<Command, String> {
        let mut chroot = as_root("chroot");
        chroot.arg(&root);
        if is_foreign(machine) {
            let emulator = answer(
                Command::new("sh")
                    .args(["-c", "command -v \"$0\""])
                    .arg(emulator(machine)),
            );
            super::copy(
                Path::new(&emulator.ok_or("no emulator")?),
                &root.join("emulator"),
            )?;
            chroot.arg("/emulator");
        }
        chroot.arg(&program);
        Ok(chroot)
    };
    let version = answer(inside()?.arg("--version"));
    let expected = format!("leasehold {}", folder.version);
    expect(
        "the version of the binary in the image",
        version.as_deref(),
        &expected,
    )?;
    // No server listens on this port. The program gets that far only with its own sockets and threads.
    let refused = output(inside()?.args(["status", "a", "--store", "redis://127.0.0.1:1"]))?;
    let error = String::from_utf8_lossy(&refused.stderr);
    if refused.status.code() == Some(69) && error.contains("refused") {
        return Ok(());
    }
    Err(format!(
        "`leasehold status` in the image: {}\n{error}",
        refused.status
    ))
}

fn emulator(machine: &Machine) -> String {
    format!("qemu-{}-static", machine.name)
}

/// Returns a call of `program`, by an emulator if it is for another kind of machine.
fn emulated(machine: &Machine, program: &Path) -> Command {
    if !is_foreign(machine) {
        return Command::new(program);
    }
    let mut command = Command::new(emulator(machine));
    command.arg(program);
    command
}

/// Returns a call of `program` as root, at least in a namespace of its own.
fn as_root(program: &str) -> Command {
    if answer(Command::new("id").arg("-u")).is_some_and(|user| user == "0") {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", program]);
    command
}

fn with(option: &str, path: &Path) -> std::ffi::OsString {
    [OsStr::new(option), path.as_os_str()].into_iter().collect()
}

fn output(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))
}

fn expect(what: &str, is: Option<&str>, expected: &str) -> Result<(), String> {
    if is == Some(expected) {
        return Ok(());
    }
    Err(format!(
        "{what} is {}, not {expected:?}",
        is.map_or("missing".to_owned(), |is| format!("{is:?}"))
    ))
}
