//! A copy of the tree can use the third-party crates that were built for the tree itself: cargo identifies
//! them by version, features, and profile, not by the place of the build. To copy them takes seconds, and to
//! build them again takes minutes.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::succeed;
use crate::workspace::Workspace;

/// Copies the products from the tree's own build folder to `build`, if that is new. Cargo rebuilds those
/// that it does not accept.
pub(super) fn lend(workspace: &Workspace, build: &Path) -> Result<(), String> {
    let (from, to) = (workspace.target().join("debug"), build.join("debug"));
    if to.exists() || !from.is_dir() {
        return Ok(());
    }
    let own = own_crates(workspace)?;
    for part in [".fingerprint", "build", "deps"] {
        let (from, to) = (from.join(part), to.join(part));
        let failed = |error: std::io::Error| format!("{}: {error}", from.display());
        fs::create_dir_all(&to).map_err(failed)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_lent = entry.path().is_dir() || is_library(&entry.file_name());
            if is_lent && !is_of(&own, &entry.file_name()) {
                names.push(entry.file_name());
            }
        }
        copy(&from, &names, &to)?;
    }
    Ok(())
}

/// Copies with modification times, which cargo uses to tell old from new.
fn copy(from: &Path, names: &[OsString], to: &Path) -> Result<(), String> {
    for some in names.chunks(AT_ONCE) {
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--target-directory"]).arg(to);
        succeed(copy.arg("--").args(some).current_dir(from))?;
    }
    Ok(())
}

/// Returns the packages of this tree: those without a source in the lock file.
fn own_crates(workspace: &Workspace) -> Result<BTreeSet<String>, String> {
    let lock = fs::read_to_string(workspace.root().join("Cargo.lock"));
    let lock = lock.map_err(|error| format!("Cargo.lock: {error}"))?;
    Ok(own_crates_in(&lock))
}

fn own_crates_in(lock: &str) -> BTreeSet<String> {
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter(|package| !package.contains("\nsource = "))
        .filter_map(|package| package.split('"').nth(1))
        .map(|name| name.replace('-', "_"))
        .collect()
}

/// Whether a product, `[lib]CRATE-HASH[.EXTENSION]`, is of one of `crates`.
fn is_of(crates: &BTreeSet<String>, product: &OsStr) -> bool {
    let product = product.to_string_lossy();
    let name = product.rsplit_once('-').map_or(&*product, |(name, _)| name);
    let name = name.replace('-', "_");
    crates.contains(&name)
        || name
            .strip_prefix("lib")
            .is_some_and(|name| crates.contains(name))
}

/// Programs, including tests, are linked for each tree.
fn is_library(file: &OsStr) -> bool {
    let extension = Path::new(file).extension();
    extension.is_some_and(|extension| {
        ["rlib", "rmeta", "so", "d"]
            .map(OsStr::new)
            .contains(&extension)
    })
}

const AT_ONCE: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_of_other_projects_are_copied() {
        let lock = "version = 4\n\n[[package]]\nname = \"leasehold-cli\"\nversion = \"0.1.0\"\n\n\
                    [[package]]\nname = \"tokio-util\"\nversion = \"1.0.0\"\nsource = \"registry\"\n";
        let own = own_crates_in(lock);
        assert!(is_of(&own, OsStr::new("libleasehold_cli-0123.rlib")));
        assert!(is_of(&own, OsStr::new("leasehold-cli-0123")));
        assert!(!is_of(&own, OsStr::new("libtokio_util-0123.rmeta")));
        assert!(is_library(OsStr::new("libtokio-0123.rlib")));
        assert!(!is_library(OsStr::new("it-0123")));
    }
}
