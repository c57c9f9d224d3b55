use std::fmt;
use std::str::FromStr;

use crate::sections::SECTIONS;

/// The options of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    /// Adds to the raw results of earlier runs.
    pub(crate) append: bool,
    /// If one of these three is empty, the section decides.
    pub(crate) nodes: Vec<usize>,
    pub(crate) waiters: Vec<usize>,
    pub(crate) in_flight: Vec<usize>,
    rounds: Option<usize>,
    only: Vec<String>,
    /// Empty: all.
    sections: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                let value = rest.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--append" => options.append = true,
                // The proof that a lock is real takes two handles.
                "--waiters" => options.waiters = numbers(argument, value()?, 2..=10_000)?,
                "--nodes" => options.nodes = numbers(argument, value()?, 1..=31)?,
                "--in-flight" => options.in_flight = numbers(argument, value()?, 1..=10_000)?,
                "--rounds" => {
                    let rounds = numbers(argument, value()?, 1..=1000)?;
                    options.rounds = rounds.first().copied();
                }
                "--only" => options.only.push(value()?.clone()),
                name if SECTIONS.iter().any(|section| section.name == name) => {
                    options.sections.push(name.into());
                }
                name if !name.starts_with('-') => {
                    return Err(format!("there is no section {name:?}"));
                }
                _ => return Err(format!("unknown argument {argument:?}")),
            }
        }
        Ok(options)
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

/// Formats the options as typed on the command line, to repeat the measurement.
impl fmt::Display for Options {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("cargo xtask bench")?;
        for (word, is_given) in [("--quick", self.quick), ("--append", self.append)] {
            if is_given {
                write!(to, " {word}")?;
            }
        }
        let rounds: Vec<usize> = self.rounds.into_iter().collect();
        let lists = [
            ("--nodes", &self.nodes),
            ("--waiters", &self.waiters),
            ("--in-flight", &self.in_flight),
            ("--rounds", &rounds),
        ];
        for (word, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            let numbers: Vec<String> = list.iter().map(ToString::to_string).collect();
            write!(to, " {word} {}", numbers.join(","))?;
        }
        for part in &self.only {
            write!(to, " --only '{part}'")?;
        }
        self.sections
            .iter()
            .try_for_each(|name| write!(to, " {name}"))
    }
}

/// Returns the given numbers, or the section's own if none were given.
pub(crate) fn or<'a>(given: &'a [usize], own: &'a [usize]) -> &'a [usize] {
    if given.is_empty() { own } else { given }
}

pub(crate) fn usage() -> String {
    let names: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
    format!(
        "\
Usage: cargo xtask bench [--quick] [--append] [--rounds N] [--only NAME]... [--nodes 1,5]
                         [--waiters 4,16,64] [--in-flight 1,64,512] [SECTION]...
       cargo xtask bench report

Sections, all of them if none is named: {}.

--quick   measures briefly: enough to see a large difference, not a small one.
--append  adds to the results that are there already, so that a long run can be taken in pieces.
--only    takes a part of a subject's name and leaves out the others.
report    writes docs/performance.md of what was measured last.",
        names.join(", ")
    )
}

fn numbers(
    argument: &str,
    text: &str,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<Vec<usize>, String> {
    text.split(',')
        .map(|part| {
            let number = usize::from_str(part).ok();
            number
                .filter(|number| allowed.contains(number))
                .ok_or_else(|| {
                    let (least, most) = (allowed.start(), allowed.end());
                    format!("{argument} takes numbers from {least} to {most}, not {part:?}")
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
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
        assert!(SECTIONS.iter().all(|section| options.has(section.name)));
        assert_eq!(
            (options.nodes(), options.rounds(3, 5)),
            ([1, 5].as_slice(), 5)
        );
    }

    #[test]
    fn options_are_shown_as_they_are_typed() {
        let line = "--quick --append --nodes 1,5 --rounds 3 --only 'rslock' modes";
        let options = parse(&line.replace('\'', "")).unwrap();
        assert_eq!(options.to_string(), format!("cargo xtask bench {line}"));
    }

    #[test]
    fn nonsense_is_named() {
        for (line, named) in [
            ("--waiters 1", "\"1\""),
            ("--nodes 5,x", "\"x\""),
            ("--rounds", "--rounds"),
            ("--speed", "--speed"),
            ("speed", "\"speed\""),
        ] {
            let text = parse(line).unwrap_err();
            assert!(text.contains(named), "{line}: {text}");
        }
    }
}
