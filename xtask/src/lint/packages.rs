//! What the page of each published crate needs.

use std::fs;
use std::path::{Path, PathBuf};

/// What the manifest of a published crate has.
const FIELDS: [&str; 5] = [
    "description = ",
    "license",
    "keywords",
    "categories",
    "[package.metadata.docs.rs]",
];

/// The files of a published crate. The licences are links, and cargo packs the files that they name.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Returns what the published crates in `folder` lack.
pub(super) fn check(folder: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    for (path, manifest) in manifests(folder)? {
        let lacks = FILES.into_iter().find(|file| !path.join(file).exists());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        violations.extend(violation(&name, &manifest, lacks));
    }
    Ok(violations)
}

/// Returns the names of the published crates in `folder`.
pub(crate) fn published(folder: &Path) -> Result<Vec<String>, String> {
    let published = manifests(folder)?
        .into_iter()
        .filter(|(_, manifest)| is_published(manifest));
    let name =
        |(path, _): (PathBuf, String)| Some(path.file_name()?.to_string_lossy().into_owned());
    Ok(published.filter_map(name).collect())
}

fn manifests(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let manifest = |path: PathBuf| {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).ok()?;
        Some((path, manifest))
    };
    Ok(paths.filter_map(manifest).collect())
}

fn is_published(manifest: &str) -> bool {
    !manifest.contains("\npublish = false\n")
}

fn violation(name: &str, manifest: &str, lacks_file: Option<&str>) -> Option<String> {
    let lacks = FIELDS.iter().find(|field| !manifest.contains(**field));
    let lacks = lacks.copied().or(lacks_file);
    lacks
        .filter(|_| is_published(manifest))
        .map(|lacks| format!("{name} is published, and lacks {lacks}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_crate_needs_its_fields() {
        let all = FIELDS.map(|field| format!("{field}\n")).concat();
        assert_eq!(violation("a", &all, None), None);
        assert_eq!(
            violation("a", &all, Some("README.md")).as_deref(),
            Some("a is published, and lacks README.md")
        );
        let most = all.replace("categories", "");
        assert!(violation("a", &most, None).is_some());
        let private = format!("name\npublish = false\n{most}");
        assert_eq!(violation("a", &private, Some("README.md")), None);
    }
}
