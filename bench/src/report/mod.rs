//! Writes docs/performance.md and its charts from the raw results.

pub(crate) mod charts;
pub(crate) mod figures;
pub(crate) mod page;
pub(crate) mod statistics;
pub(crate) mod summary;

use std::path::Path;

use crate::error::{Fallible, failed};
use crate::measure::results::Lines;
use crate::measure::surroundings::Surroundings;
use crate::report::page::Page;

/// What this program is called with to write the report.
pub(crate) const VERB: &str = "report";

const INTRODUCTION: &str = include_str!("../../pages/introduction.md");

/// Writes `docs/performance.md` and its charts from the sections, and the figures of the README.
pub(crate) fn write(sections: &[(Page, Lines)]) -> Fallible {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let charts = docs.join("performance");
    std::fs::create_dir_all(&charts).map_err(|error| failed(&charts, &error))?;
    let (mut pages, mut surroundings) = (Vec::new(), Vec::new());
    for (page, lines) in sections {
        page.write_charts(&charts)?;
        pages.push(page.markdown("performance/"));
        for text in lines.runs.iter().map(taken_on) {
            if !surroundings.contains(&text) {
                surroundings.push(text);
            }
        }
    }
    let [all, few] = summary::tables()?;
    let short = vec![summary::marked(&all)];
    let told = [vec![INTRODUCTION.to_owned()], surroundings, short, pages].concat();
    let path = docs.join("performance.md");
    std::fs::write(&path, told.join("\n")).map_err(|error| failed(&path, &error))?;
    summary::write_into(&docs.join("../README.md"), &few)?;
    println!("{}", path.display());
    Ok(())
}

/// Ends a section with what every section says of its run: who is missing, and how to repeat it.
pub(crate) fn annotate(lines: &Lines, page: &mut Page) {
    for (name, why) in &lines.skipped {
        page.say(format!("Skipped: {name}: {why}."));
    }
    for why in &lines.failed {
        page.say(format!("FAILED: {why}"));
    }
    let commands = lines.runs.iter().map(|run| format!("{}\n", run.settings));
    page.say(format!("```sh\n{}```", commands.collect::<String>()));
}

/// On what, with what, when: a paragraph.
pub(crate) fn taken_on(run: &Surroundings) -> String {
    let versions = run.versions.iter();
    let versions: Vec<String> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let (machine, versions) = (&run.machine, versions.join(", "));
    format!("{}, on {machine}: {versions}.\n", run.date())
}
