//! Writes docs/performance.md from what the sections found.

pub(crate) mod figures;
pub(crate) mod page;
pub(crate) mod statistics;
pub(crate) mod table;

use std::path::Path;

use crate::error::{Fallible, failed};
use crate::report::page::Page;
use crate::report::table::line;

/// What this program is called with to write the report.
pub(crate) const VERB: &str = "report";

const INTRODUCTION: &str = include_str!("../../pages/introduction.md");

/// What the benchmarks of the bindings found. They are programs of their own.
const BINDINGS: &str = include_str!("../../pages/bindings.md");
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench report` -->\n";
const END: &str = "<!-- end of the figures -->";

/// Writes `docs/performance.md` from the last page of each section, and the figures of the README.
pub(crate) fn write(names: &[&str]) -> Fallible {
    let pages = names.iter().map(|name| Page::load(name));
    let pages = pages.collect::<Fallible<Vec<_>>>()?;
    let mut parts = vec![INTRODUCTION.trim_end().to_owned()];
    for page in &pages {
        if !parts.contains(&page.surroundings) {
            parts.push(page.surroundings.clone());
        }
    }
    parts.push("## In short".into());
    parts.push(format!("{BEGIN}\n{}\n{END}", summary(&pages, |_| true)));
    parts.extend(pages.iter().map(|page| page.markdown().trim_end().into()));
    parts.push(BINDINGS.trim_end().into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("docs/performance.md");
    std::fs::write(&path, parts.join("\n\n") + "\n").map_err(|error| failed(&path, &error))?;
    println!("{}", path.display());
    let path = root.join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
    let few = summary(&pages, |is_in_readme| is_in_readme);
    let text = with_table(&text, &few).ok_or_else(|| format!("README.md: no line {BEGIN:?}"))?;
    Ok(std::fs::write(&path, text).map_err(|error| failed(&path, &error))?)
}

fn summary(pages: &[Page], is_wanted: fn(bool) -> bool) -> String {
    let mut table = line(&["", "Leasehold", "others"]) + &line(&["---"; 3]);
    let figures = pages.iter().flat_map(|page| &page.figures);
    let wanted = figures.filter(|(_, is_in_readme)| is_wanted(*is_in_readme));
    table.extend(wanted.map(|(row, _)| row.as_str()));
    table
}

/// Puts the table between its marks in `text`.
fn with_table(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_text_between_its_marks() {
        for old in ["", "\n| old |\n\n"] {
            let text = format!("# Title\n{BEGIN}{old}{END}\nThe rest\n");
            let expected = format!("# Title\n{BEGIN}\n| new |\n\n{END}\nThe rest\n");
            assert_eq!(with_table(&text, "| new |\n"), Some(expected));
        }
        assert_eq!(with_table("# Title\n", "| new |\n"), None);
    }

    #[test]
    fn report_has_the_figures_of_the_bindings() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
        let report = std::fs::read_to_string(path).unwrap();
        assert!(report.ends_with(BINDINGS));
    }

    #[test]
    fn figures_of_the_readme_are_in_the_report() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let table = |file: &str| -> Vec<String> {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let (_, rest) = text.split_once(BEGIN).unwrap();
            let (table, _) = rest.split_once(END).unwrap();
            table.lines().map(str::to_owned).collect()
        };
        let report = table("docs/performance.md");
        for row in table("README.md") {
            assert!(report.contains(&row), "{row}");
        }
    }
}
