//! The package for Debian, and its changelog.

use std::fs;
use std::process::Command;

use super::tools::cargo_deb;
use super::{Folder, Machine, make_anew, read, write};
use crate::step::{answer, succeed};
use crate::workspace::Workspace;

/// The longest line of a changelog.
const LINE_MAX: usize = 79;

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
    let text = read(&workspace.root().join("CHANGELOG.md"))?;
    write(
        &changelog.join("changelog.Debian"),
        &changelog_of(&text, &Signature::new(workspace, folder)?),
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

/// What begins and ends each entry of a changelog.
struct Signature {
    version: String,
    maintainer: String,
    date: String,
}

impl Signature {
    /// The date is that of the last commit, so that a package can be built again.
    fn new(workspace: &Workspace, folder: &Folder) -> Result<Self, String> {
        let manifest = read(&workspace.root().join("crates/leasehold-cli/Cargo.toml"))?;
        let mut lines = manifest.lines();
        let maintainer =
            lines.find_map(|line| line.strip_prefix("maintainer = \"")?.strip_suffix('"'));
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=%cD"])
            .current_dir(workspace.root());
        Ok(Self {
            version: folder.version.clone(),
            maintainer: maintainer
                .ok_or("the package has no maintainer")?
                .to_owned(),
            date: answer(&mut git).ok_or("`git log` failed")?,
        })
    }
}

/// Returns the first version in `text`, a changelog in Markdown, as an entry of a changelog of Debian.
fn changelog_of(text: &str, signature: &Signature) -> String {
    let Signature {
        version,
        maintainer,
        date,
    } = signature;
    let mut entry = format!("leasehold ({version}-1) unstable; urgency=medium\n\n");
    let newest = text.split("\n## ").nth(1).unwrap_or_default();
    let (_, newest) = newest.split_once('\n').unwrap_or_default();
    for paragraph in newest.replace("\n- ", "\n\n- ").split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        match (paragraph.strip_prefix("- "), paragraph.strip_prefix("### ")) {
            _ if paragraph.is_empty() => {}
            (Some(item), _) => push_wrapped(&mut entry, "  * ", item),
            (_, Some(title)) => push_wrapped(&mut entry, "  ", &format!("[ {title} ]")),
            _ => push_wrapped(&mut entry, "  ", &paragraph),
        }
    }
    entry + &format!("\n -- {maintainer}  {date}\n")
}

/// Adds `text` in lines of at most `LINE_MAX` characters, the first after `begin`.
fn push_wrapped(entry: &mut String, begin: &str, text: &str) {
    let mut line = begin.to_owned();
    for word in text.split(' ') {
        if line.len() + word.len() > LINE_MAX && line.len() > begin.len() {
            *entry += line.trim_end();
            entry.push('\n');
            line = " ".repeat(begin.len());
        }
        line += word;
        line.push(' ');
    }
    *entry += line.trim_end();
    entry.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changelog_has_the_newest_version() {
        let signature = Signature {
            version: "2.0.0".into(),
            maintainer: "A <a@b>".into(),
            date: "Mon, 23 Nov 2026 16:48:30 +0000".into(),
        };
        let long = "long ".repeat(16);
        let text = format!(
            "# Changelog\n\nText.\n\n## 2.0.0\n\n### Added\n\nA:\n\n- One,\n  two.\n- {long}\n\n## 1.0.0\n\n- Old.\n"
        );
        let long = long[..74].to_owned() + "\n    long";
        let entry = format!(
            "leasehold (2.0.0-1) unstable; urgency=medium\n\n  [ Added ]\n  A:\n  * One, two.\n  * {long}\n\n -- A <a@b>  Mon, 23 Nov 2026 16:48:30 +0000\n"
        );
        assert_eq!(changelog_of(&text, &signature), entry);
    }
}
