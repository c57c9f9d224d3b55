use std::str::FromStr;
use std::time::Duration;

pub(crate) const USAGE: &str = "\
Usage: cargo xtask bench handover [--quick] [--waiters 4,16,64,256] [--nodes 1,5]
                                  [--rounds N] [--only NAME]...
       cargo xtask bench waiters  [--quick] [--waiters 1000] [--nodes 1,5] [--only NAME]...
       cargo xtask bench modes    [--quick] [--nodes 1,5] [--rounds N] [--only NAME]...

--quick measures briefly: enough to see a large difference, not a small one.
--only takes a part of a subject's name and leaves out the others.";

/// What was asked for on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    /// Empty: as the benchmark has it.
    pub(crate) waiters: Vec<usize>,
    pub(crate) nodes: Vec<usize>,
    rounds: Option<usize>,
    only: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            quick: false,
            waiters: Vec::new(),
            nodes: vec![1, 5],
            rounds: None,
            only: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                let value = rest.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--quick" => options.quick = true,
                // The proof that a lock is real takes two handles.
                "--waiters" => options.waiters = numbers(argument, value()?, 2..=10_000)?,
                "--nodes" => options.nodes = numbers(argument, value()?, 1..=31)?,
                "--rounds" => {
                    let rounds = numbers(argument, value()?, 1..=1000)?;
                    options.rounds = rounds.first().copied();
                }
                "--only" => options.only.push(value()?.clone()),
                _ => return Err(format!("unknown argument {argument:?}")),
            }
        }
        Ok(options)
    }

    /// Odd if not said otherwise, so that the median is a round that was measured.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    /// How long the subjects contend before anything is measured.
    pub(crate) fn warm_up(&self) -> Duration {
        Duration::from_millis(if self.quick { 400 } else { 1000 })
    }

    /// How long a round of a subject is measured.
    pub(crate) fn window(&self) -> Duration {
        Duration::from_millis(if self.quick { 1500 } else { 4000 })
    }

    /// How long its commands are then counted.
    pub(crate) fn count(&self) -> Duration {
        Duration::from_millis(if self.quick { 400 } else { 1000 })
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
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
        let options = parse("--waiters 4,16 --nodes 5 --quick --only rslock").unwrap();
        assert_eq!(options.waiters, [4, 16]);
        assert_eq!(options.nodes, [5]);
        assert!(options.quick && options.wants("rslock, 2 ms") && !options.wants("redis-py"));
        assert_eq!(parse("--rounds 7").unwrap().rounds(), 7);
    }

    #[test]
    fn nonsense_is_named() {
        for (line, named) in [
            ("--waiters 1", "\"1\""),
            ("--nodes 5,x", "\"x\""),
            ("--rounds", "--rounds"),
            ("--speed", "--speed"),
        ] {
            let text = parse(line).unwrap_err();
            assert!(text.contains(named), "{line}: {text}");
        }
    }
}
