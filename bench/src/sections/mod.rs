//! What is measured. Each section runs its subjects and writes its page.

mod coldstart;
mod cycles;
mod frozen;
mod handover;
mod held;
mod stores;
mod turns;

use crate::error::Fallible;
use crate::options::Options;
use crate::report::page::Page;

/// A section of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// On the command line, and of its file under `target/bench`.
    pub(crate) name: &'static str,
    title: &'static str,
    measure: fn(&Options, &mut Page) -> Fallible,
}

/// All sections, in the order of the report. This is the only list of them.
pub(crate) const SECTIONS: [Section; 6] = [
    Section {
        name: "cycles",
        title: "A free lock",
        measure: cycles::measure,
    },
    Section {
        name: "handover",
        title: "A contended lock",
        measure: handover::measure,
    },
    Section {
        name: "frozen",
        title: "One of five servers fails",
        measure: frozen::measure,
    },
    Section {
        name: "held",
        title: "Many locks in one process",
        measure: held::measure,
    },
    Section {
        name: "stores",
        title: "PostgreSQL, etcd, ZooKeeper",
        measure: stores::measure,
    },
    Section {
        name: "coldstart",
        title: "`leasehold run` from start to exit",
        measure: coldstart::measure,
    },
];

/// Measures the sections that were asked for, or all, and keeps the page of each. A section that fails
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

impl Section {
    fn run(&self, options: &Options) -> Fallible {
        let mut page = Page::new(self.title, options);
        (self.measure)(options, &mut page)?;
        page.save(self.name)?;
        println!("{}\n{}", page.markdown(), page.surroundings);
        match page.failures {
            0 => Ok(()),
            count => Err(format!("{count} runs failed").into()),
        }
    }
}
