use std::str::FromStr;

use leasehold_instructions::{Kind, PATHS, Path};

pub(crate) const USAGE: &str = "\
Usage: cargo xtask instructions [--record] [--repeat N] [--bounds] [PATH]...
       cargo xtask instructions --profile PATH

Counts the instructions of each hot path (all if none is named) and holds them against those
recorded in bench/instructions/counts.toml.

--record writes down what was counted. --repeat counts N times and shows the spread; the median
is what counts. --bounds counts too what the redis crate alone takes. --profile shows the
functions that take most.";

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) record: bool,
    pub(crate) repeat: usize,
    pub(crate) profile: bool,
    pub(crate) paths: Vec<&'static Path>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            record: false,
            repeat: 1,
            profile: false,
            paths: Vec::new(),
        };
        let mut bounds = false;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--record" => options.record = true,
                "--profile" => options.profile = true,
                "--bounds" => bounds = true,
                "--repeat" => {
                    let value = rest.next().ok_or("--repeat needs a number")?;
                    let number = usize::from_str(value).ok();
                    let number = number.filter(|number| (1..=100).contains(number));
                    options.repeat =
                        number.ok_or_else(|| format!("--repeat takes 1 to 100, not {value:?}"))?;
                }
                flag if flag.starts_with('-') => {
                    return Err(format!("unknown argument {flag:?}"));
                }
                name => options.paths.push(Path::named(name)?),
            }
        }
        if options.profile && options.paths.len() != 1 {
            return Err("--profile takes one path".into());
        }
        if options.paths.is_empty() {
            let wanted = |path: &&Path| bounds || path.kind == Kind::Guarded;
            options.paths = PATHS.iter().filter(wanted).collect();
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn without_a_name_all_of_ours_are_meant() {
        let all = parse("--record").unwrap();
        assert!(all.record && all.paths.iter().all(|path| path.kind == Kind::Guarded));
        assert_eq!(parse("--bounds").unwrap().paths.len(), PATHS.len());
        assert_eq!(parse("raw-redis").unwrap().paths.len(), 1);
    }

    #[test]
    fn nonsense_is_named() {
        for (line, named) in [
            ("rediss", "\"rediss\""),
            ("--repeat 0", "\"0\""),
            ("--repeat", "--repeat"),
            ("--speed", "--speed"),
            ("--profile", "one path"),
        ] {
            let text = parse(line).unwrap_err();
            assert!(text.contains(named), "{line}: {text}");
        }
    }
}
