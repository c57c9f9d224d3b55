//! Checks what neither clippy nor rustfmt checks: the size of files and crates, the lints of each crate, the dependencies
//! between crates and of the fuzz targets, the imports within each crate, where the command line names stores, what
//! published crates need, that the tests of the known defects exist, and that the links of the pages lead somewhere.

mod budget;
mod fuzz;
mod imports;
mod known_defects;
mod layers;
pub(crate) mod links;
mod packages;
mod stores;

use std::path::{Path, PathBuf};

use crate::step::step;
use crate::workspace::Workspace;
use budget::Budget;
use imports::Imports;
pub(crate) use packages::published;

/// How the names of files end that have rules.
const RULED: [&str; 4] = [".rs", ".lua", ".sql", "Cargo.toml"];

/// Folders that hold no source.
const MADE: [&str; 3] = [".git", "node_modules", "target"];

/// Lines of a file, including its unit tests.
const FILE_MAX: usize = 500;

/// Runs all checks and prints each violation.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    step("lint", || {
        let mut violations = layers::check(workspace)?;
        violations.extend(packages::check(&workspace.root().join("crates"))?);
        let (mut imports, mut budget) = (Imports::default(), Budget::default());
        let mut sources = Vec::new();
        for folder in ["crates", "xtask", "bench"] {
            walk(&workspace.root().join(folder), &RULED, &mut |path| {
                let text = std::fs::read_to_string(path).map_err(|error| failed(path, &error))?;
                let path = path.strip_prefix(workspace.root()).unwrap_or(path);
                let path = path.to_string_lossy();
                imports.add(&path, &text);
                budget.add(&path, &text);
                violations.extend(violation(&path, &text));
                violations.extend(stores::violation(&path, &text));
                sources.push(text);
                Ok(())
            })?;
        }
        violations.extend(broken_links(workspace.root())?);
        let read = |path: &Path| {
            std::fs::read_to_string(workspace.root().join(path))
                .map_err(|error| failed(path, &error))
        };
        let command = read(Path::new("crates/leasehold-cli/Cargo.toml"))?;
        violations.extend(fuzz::check(&command, &read(Path::new("fuzz/Cargo.toml"))?));
        let page = Path::new("docs/development/known-defects.md");
        let text = read(page)?;
        violations.extend(known_defects::check(page, &text, &sources));
        violations.extend(imports.violations());
        violations.extend(budget.violations());
        for violation in &violations {
            println!("{violation}");
        }
        match violations.len() {
            0 => Ok(()),
            count => Err(format!("{count} violations")),
        }
    })
}

/// Returns a violation for each link of a page that leads nowhere.
fn broken_links(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    walk(root, &[".md"], &mut |path| {
        let text = std::fs::read_to_string(path).map_err(|error| failed(path, &error))?;
        let page = path.strip_prefix(root).unwrap_or(path);
        violations.extend(links::check(root, page, &text));
        Ok(())
    })?;
    Ok(violations)
}

/// Calls `visit` for each file below `folder` whose name ends with one of `ends`, except for files that a build made.
pub(crate) fn walk(
    folder: &Path,
    ends: &[&str],
    visit: &mut dyn FnMut(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !MADE.contains(&name.as_ref()) {
            walk(&path, ends, visit)?;
        } else if ends.iter().any(|end| name.ends_with(end)) {
            visit(&path)?;
        }
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn violation(path: &str, text: &str) -> Option<String> {
    if path.ends_with(".rs") {
        let lines = text.lines().count();
        (lines > FILE_MAX).then(|| {
            format!("{path}: {lines} lines, more than {FILE_MAX}: split the file by subject")
        })
    } else if path.ends_with(".lua") {
        (!text.starts_with("-- ")).then(|| {
            format!("{path}: begin with a comment that says what the script does, with which KEYS and ARGV")
        })
    } else if path.ends_with(".sql") {
        None
    } else {
        let is_set = text.contains("\n[lints]\nworkspace = true\n");
        (!is_set).then(|| format!("{path}: `[lints] workspace = true` is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_reported() {
        let path = "crates/a/src/lib.rs";
        assert_eq!(violation(path, &"\n".repeat(FILE_MAX)), None);
        assert!(violation(path, &"\n".repeat(FILE_MAX + 1)).is_some());
    }

    #[test]
    fn scripts_without_a_header_are_reported() {
        assert_eq!(violation("a.lua", "-- Frees the lock.\nreturn 1\n"), None);
        assert!(violation("a.lua", "return 1\n-- KEYS 1 the lock\n").is_some());
    }

    #[test]
    fn crates_without_the_lints_of_the_workspace_are_reported() {
        assert_eq!(
            violation("Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"),
            None
        );
        assert!(
            violation(
                "Cargo.toml",
                "[package]\n\n[lints.clippy]\nworkspace = true\n"
            )
            .is_some()
        );
    }
}
