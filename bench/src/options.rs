use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{CommandFactory, FromArgMatches, Parser};

/// Measures Leasehold next to other lock libraries and the bare server.
///
/// `cargo xtask bench report` writes docs/performance.md of what was measured last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Parser)]
#[command(bin_name = "cargo xtask bench")]
pub(crate) struct Options {
    /// Measure briefly: enough to see a large difference, not a small one
    #[arg(long)]
    pub(crate) quick: bool,
    /// Add to the raw results of earlier runs, so that a long run can be taken in pieces
    #[arg(long)]
    pub(crate) append: bool,
    /// Numbers of servers, such as `1,5`; if absent, the section decides
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = numbers(1..=31))]
    nodes: Vec<usize>,
    // The proof that a lock is real takes two handles.
    /// Numbers of waiters, such as `4,16,64`; if absent, the section decides
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = numbers(2..=10_000))]
    pub(crate) waiters: Vec<usize>,
    /// Numbers of cycles in flight, such as `1,64,512`; if absent, the section decides
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = numbers(1..=10_000))]
    pub(crate) in_flight: Vec<usize>,
    /// Number of rounds; if absent, the section decides
    #[arg(long, value_name = "N", value_parser = numbers(1..=1000))]
    rounds: Option<usize>,
    /// Part of the names of the subjects to measure; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
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

    pub(crate) fn nodes(&self) -> &[usize] {
        or(&self.nodes, &[1, 5])
    }

    /// Odd by default, so that the median is a measured round.
    pub(crate) fn rounds(&self, quick: usize, full: usize) -> usize {
        self.rounds.unwrap_or_else(|| self.pick(quick, full))
    }

    /// Returns the duration or count for `--quick`, or the one for the full run.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Returns the given numbers, or the section's own if none were given.
pub(crate) fn or<'a>(given: &'a [usize], own: &'a [usize]) -> &'a [usize] {
    if given.is_empty() { own } else { given }
}

/// The folder of the results and of what the peers need; `cargo xtask bench` chooses it.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("LEASEHOLD_BENCH_DIR").map_or_else(|| "target/bench".into(), PathBuf::from)
}

fn numbers(allowed: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["handover", "modes"];

    fn parse(line: &str) -> Result<Options, clap::Error> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&NAMES, &words)
    }

    #[test]
    fn lists_are_taken_apart() {
        let options = parse("--waiters 4,16 --nodes 5 --quick --only rslock handover").unwrap();
        assert_eq!(options.waiters, [4, 16]);
        assert_eq!(options.nodes(), [5]);
        assert!(options.quick && options.wants("rslock, 2 ms") && !options.wants("redis-py"));
        assert!(options.has("handover") && !options.has("modes"));
        assert_eq!(parse("--rounds 7").unwrap().rounds(3, 5), 7);
    }

    #[test]
    fn nothing_said_is_everything() {
        let options = parse("").unwrap();
        assert!(NAMES.iter().all(|name| options.has(name)));
        assert_eq!(
            (options.nodes(), options.rounds(3, 5)),
            ([1, 5].as_slice(), 5)
        );
    }

    #[test]
    fn options_are_shown_as_they_are_typed() {
        let words = ["--rounds", "3", "--only", "redis crate", "modes"].map(str::to_owned);
        let options = Options::parse(&NAMES, &words).unwrap();
        let line = "cargo xtask bench --rounds 3 --only 'redis crate' modes";
        assert_eq!(options.command, line);
    }

    #[test]
    fn nonsense_is_named() {
        for (line, named) in [
            ("--waiters 1", "'1'"),
            ("--nodes 5,x", "'x'"),
            ("--rounds", "--rounds"),
            ("--speed", "--speed"),
            ("speed", "'speed'"),
        ] {
            let text = parse(line).unwrap_err().to_string();
            assert!(text.contains(named), "{line}: {text}");
        }
    }
}
