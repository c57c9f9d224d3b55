//! The package for Debian.

use std::fs;
use std::process::Command;

use super::tools::cargo_deb;
use super::{Folder, Machine, make_anew, read, write};
use crate::step::{answer, succeed};
use crate::workspace::Workspace;

pub(super) fn package(
    workspace: &Workspace,
    folder: &Folder,
    machine: &Machine,
) -> Result<(), String> {
    // cargo-deb finds what its list of assets has below `target/release` in the folder of the target.
    let release = workspace.target().join(machine.target).join("release");
    for content in [folder.pages(), folder.documents()] {
        let to = release.join(content.file_name().unwrap_or_default());
        let _ = fs::remove_dir_all(&to);
        let mut copy = Command::new("cp");
        succeed(copy.arg("-R").arg(content).arg(to))?;
    }
    let changelog = release.join("changelog");
    make_anew(&changelog)?;
    write(
        &changelog.join("changelog.Debian"),
        &entry(workspace, folder)?,
    )?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "--no-name", "--recursive"])
        .arg(&changelog);
    for section in ["man1", "man5", "man7"] {
        gzip.arg(release.join("pages").join(section));
    }
    succeed(&mut gzip)?;
    let mut deb = cargo_deb(workspace)?;
    deb.args([
        "--package",
        "leasehold-cli",
        "--locked",
        "--no-build",
        "--no-strip",
    ])
    .args(["--target", machine.target, "--output"])
    .arg(folder.debian_package(machine));
    succeed(&mut deb)
}

/// Returns the entry of this version in the changelog of Debian. The date is that of the last commit, so that a package can
/// be built again.
fn entry(workspace: &Workspace, folder: &Folder) -> Result<String, String> {
    let manifest = read(&workspace.root().join("crates/leasehold-cli/Cargo.toml"))?;
    let mut lines = manifest.lines();
    let maintainer = lines.find_map(|line| line.strip_prefix("maintainer = \"")?.strip_suffix('"'));
    let maintainer = maintainer.ok_or("the package has no maintainer")?;
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%cD"]);
    let date = answer(git.current_dir(workspace.root())).ok_or("`git log` failed")?;
    let version = &folder.version;
    Ok(format!(
        "leasehold ({version}-1) unstable; urgency=medium\n\n  * New version; CHANGELOG.md has its changes.\n\n \
         -- {maintainer}  {date}\n"
    ))
}
