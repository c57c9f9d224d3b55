//! What the container image contains.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Folder, Machine, binary, copy, make_anew, read};
use crate::step::succeed;
use crate::workspace::Workspace;

/// The list of Debian and Ubuntu, by the package ca-certificates.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The folder that `docker build` gets.
pub(super) fn folder(folder: &Folder) -> PathBuf {
    folder.path.join("image")
}

/// Puts the Dockerfile and everything that it copies into one folder.
pub(super) fn prepare(
    workspace: &Workspace,
    all: &Folder,
    machines: &[Machine],
) -> Result<(), String> {
    let image = folder(all);
    make_anew(&image)?;
    let dockerfile = workspace.root().join("packaging/Dockerfile");
    copy(&dockerfile, &image.join("Dockerfile"))?;
    copy(Path::new(AUTHORITIES), &image.join("ca-certificates.crt"))?;
    let mut copy_licenses = Command::new("cp");
    copy_licenses
        .arg("-R")
        .arg(all.documents().join("licenses"));
    succeed(copy_licenses.arg(&image))?;
    for machine in machines {
        make_anew(&image.join(machine.debian))?;
        let to = image.join(machine.debian).join("leasehold");
        copy(&binary(workspace, machine), &to)?;
    }
    Ok(())
}

/// Copies to `root` what the Dockerfile copies for `machine`. Returns the program that the image starts.
pub(super) fn copy_to(all: &Folder, machine: &Machine, root: &Path) -> Result<String, String> {
    let image = folder(all);
    let dockerfile = read(&image.join("Dockerfile"))?;
    for (from, to) in copies(&dockerfile, machine.debian) {
        let to = root.join(to.trim_start_matches('/'));
        make_anew(to.parent().ok_or("no folder")?)?;
        // As Docker does: a folder takes the place of the destination.
        let mut copy = Command::new("cp");
        succeed(copy.arg("-RT").arg(image.join(from)).arg(to))?;
    }
    let mut lines = dockerfile.lines();
    let entry = lines.find_map(|line| line.strip_prefix("ENTRYPOINT [\"")?.strip_suffix("\"]"));
    Ok(entry.ok_or("the Dockerfile has no ENTRYPOINT")?.to_owned())
}

/// Returns the pairs of source and destination in `dockerfile`.
fn copies(dockerfile: &str, architecture: &str) -> Vec<(String, String)> {
    let words = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "));
    let pairs = words.filter_map(|words| words.split_once(' '));
    pairs
        .map(|(from, to)| (from.replace("${TARGETARCH}", architecture), to.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_those_of_the_architecture() {
        let dockerfile =
            "FROM scratch\nCOPY a.crt /etc/a.crt\nCOPY ${TARGETARCH}/b /usr/b\nUSER 1\n";
        let pairs = [("a.crt", "/etc/a.crt"), ("arm64/b", "/usr/b")];
        let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned()));
        assert_eq!(copies(dockerfile, "arm64"), pairs);
    }
}
