//! The fuzz target of the command, which is compiled from the files of the command with dependencies of its own.

use std::collections::BTreeSet;

/// Returns a violation for each dependency, and each feature of one, that the command always has and the targets lack. Both are
/// manifests.
pub(super) fn check(command: &str, targets: &str) -> Vec<String> {
    let targets: BTreeSet<String> = dependencies(targets).flatten().collect();
    let missing = dependencies(command)
        .flatten()
        .filter(|name| !targets.contains(name));
    missing
        .map(|name| format!("fuzz/Cargo.toml lacks {name}, which leasehold-cli has"))
        .collect()
}

/// Returns the name of each dependency of a manifest, and `name/feature` for each feature. Without the optional ones.
fn dependencies(manifest: &str) -> impl Iterator<Item = Vec<String>> {
    let (_, section) = manifest
        .split_once("\n[dependencies]\n")
        .unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let kept = lines.filter(|line| !line.starts_with('#') && !line.contains("optional = true"));
    kept.filter_map(|line| {
        let name = line
            .split(['.', ' '])
            .next()
            .filter(|name| !name.is_empty())?;
        let (_, features) = line.split_once("features = [").unwrap_or_default();
        let features = features.split(']').next().unwrap_or_default();
        let features = features.split('"').skip(1).step_by(2);
        let features = features.map(|feature| format!("{name}/{feature}"));
        Some([name.to_owned()].into_iter().chain(features).collect())
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
        let command = "\n[dependencies]\na = { workspace = true, features = [\"b\", \"c\"] }\n";
        let targets = "\n[dependencies]\na = { path = \"a\", features = [\"b\"] }\n";
        let found = check(command, targets);
        assert_eq!(
            found,
            ["fuzz/Cargo.toml lacks a/c, which leasehold-cli has"]
        );
    }
}
