//! What is measured: each section has a function that measures and one that reports.

mod blocking;
mod coldstart;
mod cost;
mod cycles;
mod files;
mod frozen;
mod handover;
mod held;
mod modes;
mod turns;
mod waiters;

use crate::error::Fallible;
use crate::measure::results::{Lines, Results};
use crate::options::{Options, folder};
use crate::report;
use crate::report::page::Page;

/// A section of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// On the command line, and of its files under `target/bench`.
    pub(crate) name: &'static str,
    /// Measures, and keeps every round as a line of raw results.
    measure: Measure,
    /// Writes the page from the lines alone, so that it can be written again.
    write_page: WritePage,
}

/// All sections, in the order of the report. This is the only list of them.
pub(crate) const SECTIONS: [Section; 9] = [
    Section::new("cycles", cycles::measure, cycles::write_page),
    Section::new("handover", handover::measure, handover::write_page),
    Section::new("modes", modes::measure, modes::write_page),
    Section::new("waiters", waiters::measure, waiters::write_page),
    Section::new("frozen", frozen::measure, frozen::write_page),
    Section::new("held", held::measure, held::write_page),
    Section::new("cost", cost::measure, cost::write_page),
    Section::new("coldstart", coldstart::measure, coldstart::write_page),
    Section::new("files", files::measure, files::write_page),
];

/// Measures the sections that were asked for, or all, and writes the page of each. A section that fails
/// is named at the end, and does not stop the others.
pub(crate) fn run(options: &Options) -> Fallible {
    let mut failed = Vec::new();
    for section in SECTIONS.iter().filter(|section| options.has(section.name)) {
        if let Err(why) = section.run(options) {
            failed.push(format!("{}: {why}", section.name));
        }
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(failed.join("\n").into()),
    }
}

/// Writes the report from the last results under `target/bench`. Measures nothing.
pub(crate) fn report() -> Fallible {
    let pages = SECTIONS.map(|section| {
        if !Lines::exist(section.name) {
            return Err(format!("{} was not measured yet", section.name).into());
        }
        let lines = Lines::read(section.name)?;
        Ok((section.page(&lines)?, lines))
    });
    report::write(&pages.into_iter().collect::<Fallible<Vec<_>>>()?)
}

type Measure = fn(&Options, &mut Results) -> Fallible;
type WritePage = fn(&Lines, &mut Page) -> Fallible;

impl Section {
    const fn new(name: &'static str, measure: Measure, write_page: WritePage) -> Self {
        Self {
            name,
            measure,
            write_page,
        }
    }

    fn run(&self, options: &Options) -> Fallible {
        let mut results = Results::open(self.name, options)?;
        let measured = (self.measure)(options, &mut results);
        let lines = Lines::read(self.name)?;
        let mut page = self.page(&lines)?;
        if let Some(last) = lines.runs.last() {
            page.say(report::taken_on(last));
        }
        println!("{}", page.write(&folder())?);
        measured?;
        match lines.failed.len() {
            0 => Ok(()),
            count => Err(format!("{count} runs failed").into()),
        }
    }

    fn page(&self, lines: &Lines) -> Fallible<Page> {
        let mut page = Page::new(self.name);
        (self.write_page)(lines, &mut page)?;
        report::annotate(lines, &mut page);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::peers::WORKER_VERB;

    #[test]
    fn a_name_is_given_once_and_is_no_verb() {
        let mut names: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        assert!(!names.contains(&report::VERB) && !names.contains(&WORKER_VERB));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SECTIONS.len());
    }
}
