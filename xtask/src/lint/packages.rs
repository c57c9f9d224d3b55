//! What the page of each published crate needs.

use std::fs;
use std::path::Path;

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
    let failed = |error| format!("{}: {error}", folder.display());
    let mut violations = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else {
            continue;
        };
        let lacks = FILES.into_iter().find(|file| !path.join(file).exists());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        violations.extend(violation(&name, &manifest, lacks));
    }
    Ok(violations)
}

fn violation(name: &str, manifest: &str, lacks_file: Option<&str>) -> Option<String> {
    let is_published = !manifest.contains("\npublish = false\n");
    let lacks = FIELDS.iter().find(|field| !manifest.contains(**field));
    let lacks = lacks.copied().or(lacks_file);
    lacks
        .filter(|_| is_published)
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
