//! Links of the pages to other files of the repository, and to headings in them.

use std::path::Path;

/// Returns a violation for each relative link of `page`, a file below `root`, that leads nowhere.
pub(crate) fn check(root: &Path, page: &Path, text: &str) -> Vec<String> {
    let broken = links(text).filter(|link| is_broken(root, page, link));
    broken
        .map(|link| format!("{}: the link {link} leads nowhere", page.display()))
        .collect()
}

/// Returns `text` with the bare words of each link that leads nowhere.
pub(crate) fn without_broken(root: &Path, page: &Path, text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let target = target(after);
        match before.rfind('[') {
            Some(start) if is_relative(target) && is_broken(root, page, target) => {
                kept += &before[..start];
                kept += &before[start + 1..];
                let after = &after[target.len()..];
                rest = after.strip_prefix(')').unwrap_or(after);
            }
            _ => {
                kept += before;
                kept += "](";
                rest = after;
            }
        }
    }
    kept + rest
}

fn is_broken(root: &Path, page: &Path, link: &str) -> bool {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => page.with_file_name("").join(path),
    };
    let target = root.join(target);
    match heading {
        "" => !target.exists(),
        _ => !std::fs::read_to_string(target)
            .is_ok_and(|text| headings(&text).any(|found| found == heading)),
    }
}

/// Returns the targets of the links that name no other site.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).map(target);
    targets.filter(|target| is_relative(target))
}

/// Returns the target of a link, which `text` begins with.
fn target(text: &str) -> &str {
    text.split([')', ' ']).next().unwrap_or_default()
}

fn is_relative(target: &str) -> bool {
    !target.contains(':') && !target.starts_with('/')
}

/// Returns the names of the headings, as GitHub forms them. A line of code is no heading.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let outside = text.split("\n```").step_by(2);
    outside
        .flat_map(str::lines)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let kept = line.trim_start_matches('#').trim().chars();
            let kept = kept.filter(|char| char.is_alphanumeric() || "-_ ".contains(*char));
            kept.flat_map(char::to_lowercase)
                .map(|char| if char == ' ' { '-' } else { char })
                .collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_the_repository_are_found() {
        let text = "[a](b.md#c), [d](https://e), ![f](g.svg)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b.md#c", "g.svg"]);
    }

    #[test]
    fn headings_are_named_like_on_github() {
        let text = "# A\n```sh\n# code\n```\n## `run -- CMD`: what, and why\ntext";
        let found: Vec<String> = headings(text).collect();
        assert_eq!(found, ["a", "run----cmd-what-and-why"]);
    }

    #[test]
    fn broken_links_are_reported() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let check = |text| check(root, Path::new("src/page.md"), text);
        assert!(check("[a](main.rs) [b](../Cargo.toml)").is_empty());
        assert_eq!(check("[a](none.rs)").len(), 1);
        assert_eq!(check("[a](main.rs#none)").len(), 1);
    }

    #[test]
    fn broken_links_become_text() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[a](none.rs), ![b](main.rs), [c](https://d), [`e`](none.rs#f).";
        assert_eq!(
            without_broken(root, Path::new("src/page.md"), text),
            "a, ![b](main.rs), [c](https://d), `e`."
        );
    }
}
