use std::path::Path;

use crate::page::Page;
use crate::results::{Lines, failed};
use crate::section::SECTIONS;
use crate::surroundings::Surroundings;

/// What this program is called with to write the report.
pub(crate) const VERB: &str = "report";

const INTRODUCTION: &str = include_str!("../pages/introduction.md");

/// Writes `docs/performance.md` and its charts of what was measured last, which `target/bench`
/// holds. Nothing is measured.
pub(crate) fn run() -> Result<(), String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let charts = docs.join("performance");
    std::fs::create_dir_all(&charts).map_err(|error| failed(&charts, &error))?;
    let mut pages = vec![INTRODUCTION.to_owned()];
    for section in SECTIONS {
        match section.told()? {
            Some(page) => {
                page.write_charts(&charts)?;
                pages.push(page.markdown("performance/"));
            }
            None => return Err(format!("{} was not measured yet", section.name)),
        }
    }
    let path = docs.join("performance.md");
    std::fs::write(&path, pages.join("\n")).map_err(|error| failed(&path, &error))?;
    println!("{}", path.display());
    Ok(())
}

/// Ends a section with what every section says of its run: who is missing, on what, with what.
pub(crate) fn annotate(lines: &Lines, page: &mut Page) {
    for (name, why) in lines.skipped() {
        page.say(format!("Skipped: {name}: {why}."));
    }
    for why in lines.failures() {
        page.say(format!("FAILED: {why}"));
    }
    if let Some(first) = lines.runs.first() {
        page.say(surroundings(first, &lines.runs));
    }
}

fn surroundings(first: &Surroundings, all: &[Surroundings]) -> String {
    let versions = first.versions.iter();
    let versions: Vec<String> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let mut text = format!("{}. {}.", first.machine, versions.join(", "));
    for run in all {
        text += &format!("\n`{}`", run.settings);
    }
    text
}
