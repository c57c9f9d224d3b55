use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
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
    for library in programs.iter().flat_map(Program::libraries) {
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
    println!("unpacking {} below {}", packages.join(" "), root.display());
    let archives = root.join("archives");
    // An earlier run may have left some.
    let _ = fs::remove_dir_all(&archives);
    let failed = |error: io::Error| format!("{}: {error}", archives.display());
    fs::create_dir_all(&archives).map_err(failed)?;
    let download = || {
        let mut download = apt_get(&archives);
        succeed(download.arg("download").args(packages))
    };
    // The package lists may be missing, or name files that the mirror no longer has.
    download().or_else(|_| {
        succeed(apt_get(root).arg("update"))?;
        download()
    })?;
    for archive in fs::read_dir(&archives).map_err(failed)? {
        let archive = archive.map_err(failed)?.path();
        let mut unpack = Command::new("dpkg-deb");
        succeed(unpack.arg("-x").arg(archive).arg(root))?;
    }
    fs::remove_dir_all(&archives).map_err(failed)
}

fn apt_get(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["-qq", "-o", "Acquire::Retries=3"])
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}
