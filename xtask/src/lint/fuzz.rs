//! The fuzz target of the command, which is compiled from the files of the command with dependencies of its own.

use std::collections::BTreeSet;

/// Returns a violation for each dependency that the command always has and the targets lack. Both are manifests.
pub(super) fn check(command: &str, targets: &str) -> Vec<String> {
    let targets: BTreeSet<&str> = dependencies(targets).collect();
    let missing = dependencies(command).filter(|name| !targets.contains(name));
    missing
        .map(|name| format!("fuzz/Cargo.toml lacks {name}, which leasehold-cli has"))
        .collect()
}

/// Returns the names of the dependencies of a manifest, without the optional ones.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let (_, section) = manifest
        .split_once("\n[dependencies]\n")
        .unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let kept = lines.filter(|line| !line.starts_with('#') && !line.contains("optional = true"));
    kept.filter_map(|line| {
        line.split(['.', ' '])
            .next()
            .filter(|name| !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_dependency_is_reported() {
        let command = "\n[dependencies]\na.workspace = true\nb = \"1\"\nc = { optional = true }\n";
        assert!(check(command, "\n[dependencies]\n# a\na = \"1\"\nb = \"1\"\n").is_empty());
        assert_eq!(
            check(command, "\n[dependencies]\na = \"1\"\n\n[b]\n").len(),
            1
        );
    }
}
