//! What is measured: each section has a function that measures and one that reports.

pub(crate) mod coldstart;
pub(crate) mod cost;
pub(crate) mod cycles;
pub(crate) mod files;
pub(crate) mod frozen;
pub(crate) mod handover;
pub(crate) mod held;
pub(crate) mod modes;
pub(crate) mod waiters;

use crate::measure::results::{Lines, Results};
use crate::options::Options;
use crate::report;
use crate::report::page::Page;

/// One subject of the report, measured and told apart from the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// On the command line, and of its files under `target/bench`.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Measures, and keeps every round as a line of raw results.
    pub(crate) measure: fn(&Options, &mut Results) -> Result<(), String>,
    /// Tells what the lines say. Of these alone, so that the report can be written again.
    pub(crate) tell: fn(&Lines, &mut Page) -> Result<(), String>,
}

/// All there are, in the order of the report. Here, and nowhere else, a new one is entered.
pub(crate) const SECTIONS: [Section; 9] = [
    cycles::SECTION,
    handover::SECTION,
    modes::SECTION,
    waiters::SECTION,
    frozen::SECTION,
    held::SECTION,
    cost::SECTION,
    coldstart::SECTION,
    files::SECTION,
];

/// Measures the sections that were asked for, or all, and writes the page of each. One that fails
/// is named at the end, and takes no other with it.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut failed = Vec::new();
    for section in SECTIONS.iter().filter(|section| options.has(section.name)) {
        if let Err(why) = section.run(options) {
            failed.push(format!("{}: {why}", section.name));
        }
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(failed.join("\n")),
    }
}

impl Section {
    fn run(&self, options: &Options) -> Result<(), String> {
        let mut results = Results::open(self.name, options)?;
        let measured = (self.measure)(options, &mut results);
        let lines = Lines::read(self.name)?;
        let mut page = self.page(&lines)?;
        if let Some(last) = lines.runs.last() {
            page.say(report::describe(last));
        }
        println!("{}", page.write(&crate::measure::results::folder(), "")?);
        measured?;
        match lines.failures().len() {
            0 => Ok(()),
            count => Err(format!("{count} runs failed")),
        }
    }

    /// What `target/bench` holds of this section, told; none if it was not measured.
    pub(crate) fn told(&self) -> Result<Option<(Page, Lines)>, String> {
        if !Lines::exist(self.name) {
            return Ok(None);
        }
        let lines = Lines::read(self.name)?;
        Ok(Some((self.page(&lines)?, lines)))
    }

    fn page(&self, lines: &Lines) -> Result<Page, String> {
        let mut page = Page::new(self.name, self.title);
        (self.tell)(lines, &mut page)?;
        report::annotate(lines, &mut page);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_is_no_verb() {
        let mut names: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        assert!(!names.contains(&report::VERB) && !names.contains(&crate::worker::VERB));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SECTIONS.len());
    }
}
