use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{CommandFactory, FromArgMatches, Parser};

/// Measures Leasehold next to other lock libraries and the bare server.
///
/// `cargo xtask bench report` writes docs/performance.md from the last measurement of each section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Parser)]
#[command(bin_name = "cargo xtask bench")]
pub(crate) struct Options {
    /// Measure briefly: enough to see a large difference, not a small one
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of rounds; if absent, the section decides
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    rounds: Option<usize>,
    /// Part of the names of the subjects to measure; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Part of the name of a store in the section `stores`; may be repeated
    #[arg(long, value_name = "NAME")]
    store: Vec<String>,
    /// Sections to measure [default: all]
    #[arg(value_name = "SECTION")]
    sections: Vec<String>,
    /// The command as typed, to repeat the measurement.
    #[arg(skip)]
    pub(crate) command: String,
}

impl Options {
    /// Parses the command line, in which the sections have these `names`.
    pub(crate) fn parse(names: &[&'static str], arguments: &[String]) -> Result<Self, clap::Error> {
        let names = PossibleValuesParser::new(names.iter().copied());
        let matches = Self::command()
            .no_binary_name(true)
            .mut_arg("sections", |sections| sections.value_parser(names))
            .try_get_matches_from(arguments)?;
        let typed = arguments.iter().map(|word| match word.contains(' ') {
            true => format!(" '{word}'"),
            false => format!(" {word}"),
        });
        Ok(Self {
            command: format!("cargo xtask bench{}", typed.collect::<String>()),
            ..Self::from_arg_matches(&matches)?
        })
    }

    pub(crate) fn has(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|name| name == section)
    }

    /// Odd by default, so that the median is a measured round.
    pub(crate) fn rounds(&self, full: usize) -> usize {
        self.rounds.unwrap_or_else(|| self.pick(1, full))
    }

    /// Returns the duration or count for `--quick`, or the one for the full run.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        has_any(name, &self.only)
    }

    pub(crate) fn wants_store(&self, name: &str) -> bool {
        has_any(name, &self.store)
    }
}

/// Returns whether `name` contains one of `parts`; without parts, `true`.
fn has_any(name: &str, parts: &[String]) -> bool {
    parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
}

/// The folder of the results and of what the peers need; `cargo xtask bench` chooses it.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("LEASEHOLD_BENCH_DIR").map_or_else(|| "target/bench".into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["handover", "held"];

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Options::parse(&NAMES, &words)
    }

    #[test]
    fn options_choose_sections_subjects_and_rounds() {
        let typed = ["--quick", "--rounds", "7", "--only", "redis crate", "held"];
        let options = parse(&typed).unwrap();
        assert!(options.has("held") && !options.has("handover"));
        assert!(options.wants("redis crate, one thread") && !options.wants("rslock"));
        assert_eq!((options.rounds(5), options.pick(1, 2)), (7, 1));
        let line = "cargo xtask bench --quick --rounds 7 --only 'redis crate' held";
        assert_eq!(options.command, line);
    }

    #[test]
    fn options_choose_stores() {
        let options = parse(&["--store", "PostgreSQL"]).unwrap();
        assert!(options.wants_store("PostgreSQL that waits") && !options.wants_store("etcd"));
    }

    #[test]
    fn no_argument_selects_everything() {
        let options = parse(&[]).unwrap();
        assert!(NAMES.iter().all(|name| options.has(name)) && options.wants("rslock"));
        assert_eq!(options.rounds(5), 5);
    }
}
