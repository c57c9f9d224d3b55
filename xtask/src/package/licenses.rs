//! The licenses of Leasehold, and of what is linked into the binary: crates, the standard library, and the C library.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Wheels, copy, make_anew, read, write};
use crate::lint::walk;
use crate::step::{answer, cargo};
use crate::workspace::Workspace;

/// The licenses of Leasehold.
const OURS: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// How the names of files with a license begin.
const NAMES: [&str; 6] = [
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];

/// Crates without such a file, and a crate of the same repository that has it.
const SAME_AS: [(&str, &str); 1] = [("tonic-prost", "tonic")];

/// Crates whose repository has a license that they leave out, and a copy of it here.
const COPIES: [(&str, &str); 2] = [
    ("napi", "packaging/licenses/napi.txt"),
    ("napi-sys", "packaging/licenses/napi.txt"),
];

/// Licenses within the package of Zig, whose linker links these parts.
const OF_ZIG: [(&str, &str); 3] = [
    ("LICENSE", "zig.txt"),
    ("lib/libc/musl/COPYRIGHT", "musl.txt"),
    ("lib/libunwind/LICENSE.TXT", "libunwind.txt"),
];

/// What is linked.
#[derive(Debug)]
pub(crate) struct Program {
    /// What users call it.
    pub(crate) name: &'static str,
    /// Its crate.
    pub(crate) package: &'static str,
    /// The manifest of its workspace.
    pub(crate) manifest: PathBuf,
}

/// Writes all licenses into `to`; those of Zig, if its linker linked the program. A crate without a license is an error.
pub(crate) fn write_all(
    workspace: &Workspace,
    program: &Program,
    zig: Option<&Wheels>,
    targets: &[&str],
    to: &Path,
) -> Result<(), String> {
    make_anew(to)?;
    for name in OURS {
        copy(&workspace.root().join(name), &to.join(name))?;
    }
    write(
        &to.join("crates.txt"),
        &of_crates(
            workspace,
            program.name,
            &linked(workspace, program, targets)?,
        )?,
    )?;
    let rust = answer(Command::new("rustc").args(["--print", "sysroot"]));
    let rust = PathBuf::from(rust.ok_or("`rustc --print sysroot` failed")?);
    let rust = rust.join("share/doc/rust/COPYRIGHT-library.html");
    copy(&rust, &to.join("rust.html"))?;
    let Some(wheels) = zig else { return Ok(()) };
    let zig = wheels.zig().ok_or("the folder of Zig is unknown")?;
    OF_ZIG
        .iter()
        .try_for_each(|(from, name)| copy(&zig.join(from), &to.join(name)))
}

/// A crate, as cargo prints it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    license: String,
}

impl Crate {
    /// Reads a line of `cargo tree`. Returns `None` for a crate of this workspace.
    fn parse(line: &str) -> Option<Self> {
        let (package, license) = line.split_once('|')?;
        let (name, version) = package.split_once(" v")?;
        (!version.contains(' ')).then(|| Self {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.trim_end_matches(" (*)").to_owned(),
        })
    }
}

/// Returns the crates that are linked into the binary.
fn linked(
    workspace: &Workspace,
    program: &Program,
    targets: &[&str],
) -> Result<BTreeSet<Crate>, String> {
    let words = "tree --locked --edges normal,no-proc-macro --prefix none --format {p}|{l}";
    let mut tree = cargo(workspace, words);
    tree.args(["--package", program.package, "--manifest-path"]);
    tree.arg(&program.manifest);
    for target in targets {
        tree.args(["--target", target]);
    }
    let tree = answer(&mut tree).ok_or("`cargo tree` failed")?;
    Ok(tree.lines().filter_map(Crate::parse).collect())
}

/// Returns each different license of `crates`, below the crates that have it.
fn of_crates(
    workspace: &Workspace,
    program: &str,
    crates: &BTreeSet<Crate>,
) -> Result<String, String> {
    let mut owners: BTreeMap<String, BTreeSet<&Crate>> = BTreeMap::new();
    for one in crates {
        let same = SAME_AS.iter().find(|(name, _)| *name == one.name);
        let same = same.and_then(|(_, name)| crates.iter().find(|it| it.name == *name));
        let copy = COPIES.iter().find(|(name, _)| *name == one.name);
        let found = match copy {
            Some((_, path)) => BTreeSet::from([read(&workspace.root().join(path))?]),
            None => texts(&folder(same.unwrap_or(one))?)?,
        };
        for text in found {
            owners.entry(text).or_default().insert(one);
        }
    }
    let mut all = format!(
        "{program} contains the crates below, each under the licenses that follow its name.\n"
    );
    for (text, crates) in owners {
        // Writing to a string cannot fail.
        let _ = writeln!(all, "\n{}\n", "=".repeat(78));
        for one in crates {
            let _ = writeln!(all, "{} {}: {}", one.name, one.version, one.license);
        }
        let _ = writeln!(all, "\n{text}");
    }
    Ok(all)
}

/// Returns the folder with the source of `one`, which the build has downloaded.
fn folder(one: &Crate) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = cargo.ok_or("no home directory")?.join("registry/src");
    let registries = std::fs::read_dir(&sources);
    let registries = registries.map_err(|error| format!("{}: {error}", sources.display()))?;
    let name = format!("{}-{}", one.name, one.version);
    let mut folders = registries
        .flatten()
        .map(|registry| registry.path().join(&name));
    let folder = folders.find(|folder| folder.is_dir());
    folder.ok_or_else(|| format!("no source of {name} below {}", sources.display()))
}

/// Returns the licenses below `folder`. It is an error if there is none.
fn texts(folder: &Path) -> Result<BTreeSet<String>, String> {
    let mut texts = BTreeSet::new();
    walk(folder, &[""], &mut |path| {
        if is_license(path.strip_prefix(folder).unwrap_or(path)) {
            texts.insert(read(path)?.trim().replace('\r', ""));
        }
        Ok(())
    })?;
    match texts.is_empty() {
        true => Err(format!("no license below {}", folder.display())),
        false => Ok(texts),
    }
}

/// Whether the file, or a folder that it is in, has a name of `NAMES`.
fn is_license(path: &Path) -> bool {
    let is_code = path.extension().is_some_and(|end| end == "rs");
    let is_named = |name: &OsStr| {
        let name = name.to_string_lossy().to_lowercase();
        NAMES.iter().any(|begin| name.starts_with(begin))
    };
    !is_code && path.iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_the_workspace_need_no_license() {
        let tree = "leasehold-cli v0.1.0 (/src/crates/leasehold-cli)|MIT\nring v0.17.14|ISC (*)";
        let ring = Crate {
            name: "ring".into(),
            version: "0.17.14".into(),
            license: "ISC".into(),
        };
        assert_eq!(
            tree.lines().filter_map(Crate::parse).collect::<Vec<_>>(),
            [ring]
        );
    }

    #[test]
    fn licenses_are_known_by_name() {
        for path in [
            "LICENSE",
            "src/a/LICENSE-MIT",
            "licenses/MIT.txt",
            "COPYING",
        ] {
            assert!(is_license(Path::new(path)), "{path}");
        }
        for path in ["src/license.rs", "README.md"] {
            assert!(!is_license(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn folder_without_a_license_is_an_error() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(texts(&root.join("src")).is_err());
    }
}
