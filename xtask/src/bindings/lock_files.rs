//! The bindings have a lock file of their own. What they share with the other crates must have the same version.

use std::collections::{BTreeMap, BTreeSet};

use crate::package::read;
use crate::workspace::Workspace;

/// Fails if a crate of both lock files has another version in that of the bindings, where it could have the same.
pub(super) fn compare(workspace: &Workspace) -> Result<(), String> {
    let versions_in = |file: &str| read(&workspace.root().join(file)).map(|text| versions(&text));
    let differing = differing(
        &versions_in("Cargo.lock")?,
        &versions_in("bindings/Cargo.lock")?,
    );
    match differing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "bindings/Cargo.lock has other versions than Cargo.lock: {}; \
             run `cargo update --precise` in bindings/",
            differing.join(", ")
        )),
    }
}

type Versions = BTreeMap<String, BTreeSet<String>>;

fn versions(text: &str) -> Versions {
    let mut versions = Versions::new();
    for package in text.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let lines = package.lines();
            let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            values
                .next()
                .map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version)) = (field("name"), field("version")) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
}

/// Returns the part of a version that all compatible ones share. Two crates may need others at the same time.
fn series(version: &str) -> &str {
    let parts = if version.starts_with("0.") { 2 } else { 1 };
    let end = version.match_indices('.').nth(parts - 1);
    end.map_or(version, |(at, _)| &version[..at])
}

fn differing(main: &Versions, bindings: &Versions) -> Vec<String> {
    let mut differing = Vec::new();
    for (name, versions) in bindings {
        let Some(known) = main.get(name) else {
            continue;
        };
        for version in versions.difference(known) {
            let mut compatible = known.iter();
            if compatible.any(|it| series(it) == series(version)) {
                differing.push(format!("{name} {version}"));
            }
        }
    }
    differing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock_file(packages: &[(&str, &str)]) -> Versions {
        let package = |(name, version): &(&str, &str)| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
        };
        versions(&packages.iter().map(package).collect::<String>())
    }

    #[test]
    fn other_version_of_common_crate_is_found() {
        let main = lock_file(&[("rand", "0.9.1"), ("rand", "0.10.3"), ("tokio", "1.54.1")]);
        let same = lock_file(&[("rand", "0.10.3"), ("pyo3", "0.30.1")]);
        assert!(differing(&main, &same).is_empty());
        let other = lock_file(&[("rand", "0.10.4"), ("tokio", "1.55.0")]);
        assert_eq!(differing(&main, &other), ["rand 0.10.4", "tokio 1.55.0"]);
        let incompatible = lock_file(&[("rand", "0.11.0"), ("tokio", "2.0.0")]);
        assert!(differing(&main, &incompatible).is_empty());
    }
}
