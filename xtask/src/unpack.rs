use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::Program;
use crate::step::{answer, succeed};

/// Whether this system has the packages of Debian or Ubuntu, and the programs that read them. No root is needed.
pub(crate) fn may_unpack() -> bool {
    let has = |program: &str| answer(Command::new(program).arg("--version")).is_some();
    has("apt-get") && has("dpkg-deb")
}

/// Downloads the packages of `programs`, and unpacks them below `folder` without installing them: their installation
/// would start services of the system. Links the programs in `folder`.
pub(crate) fn unpack(folder: &Path, programs: &[Program]) -> Result<(), String> {
    let root = folder.join("unpacked");
    let packages: BTreeSet<&str> = programs.iter().map(|program| program.package).collect();
    unpack_packages(&root, &Vec::from_iter(packages))?;
    for library in programs.iter().flat_map(|program| program.libraries) {
        // Distributions since 2024 have another name for what was compiled for 64 bits of time.
        unpack_packages(&root, &[library])
            .or_else(|_| unpack_packages(&root, &[&format!("{library}t64")]))?;
    }
    for program in programs {
        let link = folder.join(program.name);
        // A dangling link would be in the way.
        let _ = fs::remove_file(&link);
        let folders = ["usr/bin", "usr/sbin"].map(|folder| root.join(folder));
        let mut targets = folders.iter().map(|folder| folder.join(program.name));
        let target = targets.find(|file| file.exists());
        let target = target.ok_or_else(|| format!("no {} in {}", program.name, program.package))?;
        std::os::unix::fs::symlink(&target, &link)
            .map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(())
}

/// Downloads packages, and unpacks them below `root` without installing them.
pub(crate) fn unpack_packages(root: &Path, packages: &[&str]) -> Result<(), String> {
    fs::create_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))?;
    println!("unpacking {} below {}", packages.join(" "), root.display());
    let download = || {
        let mut download = apt_get(root);
        succeed(download.arg("download").args(packages))
    };
    // The package lists may be missing, or name files that the mirror no longer has.
    download().or_else(|_| {
        succeed(apt_get(root).arg("update"))?;
        download()
    })?;
    for package in packages {
        let archive = archive_of(root, package)?;
        let mut unpack = Command::new("dpkg-deb");
        succeed(unpack.arg("-x").arg(&archive).arg(root))?;
        // The files are enough.
        let _ = fs::remove_file(archive);
    }
    Ok(())
}

fn apt_get(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["-qq", "-o", "Acquire::Retries=3"])
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn archive_of(folder: &Path, package: &str) -> Result<PathBuf, String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut archives = files.map(|file| file.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| is_archive_of(name, package))
    });
    archives
        .next()
        .ok_or_else(|| format!("apt-get downloaded no archive of {package}"))
}

fn is_archive_of(file: &str, package: &str) -> bool {
    let version = file
        .strip_prefix(package)
        .filter(|_| file.ends_with(".deb"));
    version.is_some_and(|version| version.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_known_by_their_package() {
        assert!(is_archive_of(
            "etcd-server_3.4.23-4+b4_amd64.deb",
            "etcd-server"
        ));
        assert!(!is_archive_of("etcd-server_3.4.23-4+b4_amd64.deb", "etcd"));
        assert!(!is_archive_of("etcd-server_3.4.23.txt", "etcd-server"));
    }
}
