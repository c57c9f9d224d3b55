use clap::Parser;
use clap::builder::RangedU64ValueParser;
use leasehold_instructions::{Kind, PATHS, Path};

/// Counts the instructions of each hot path and compares them with the recorded counts.
///
/// The counts are recorded in bench/instructions/counts.toml.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(bin_name = "cargo xtask instructions", no_binary_name = true)]
pub(crate) struct Options {
    /// Write down what was counted
    #[arg(long)]
    pub(crate) record: bool,
    /// Run each path N times; the run with the fewest instructions counts
    #[arg(long, value_name = "N", default_value = "2", value_parser = repeats())]
    pub(crate) repeat: usize,
    /// Count too what the redis crate alone takes
    #[arg(long)]
    bounds: bool,
    /// Show the functions that take most, instead of comparing the paths
    #[arg(long)]
    pub(crate) profile: bool,
    /// Paths to count [default: all of ours]
    #[arg(value_name = "PATH", value_parser = Path::named, num_args = 0.., required_if_eq("profile", "true"))]
    paths: Vec<&'static Path>,
}

impl Options {
    pub(crate) fn paths(&self) -> Vec<&'static Path> {
        if self.paths.is_empty() {
            let wanted = |path: &&Path| self.bounds || path.kind == Kind::Guarded;
            PATHS.iter().filter(wanted).collect()
        } else {
            self.paths.clone()
        }
    }
}

fn repeats() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn without_a_name_all_of_ours_are_meant() {
        let all = parse("--record").unwrap();
        assert!(all.record && all.paths().iter().all(|path| path.kind == Kind::Guarded));
        assert_eq!(parse("--bounds").unwrap().paths().len(), PATHS.len());
        assert_eq!(parse("raw-redis").unwrap().paths().len(), 1);
    }

    #[test]
    fn nonsense_is_named() {
        for (line, named) in [
            ("rediss", "\"rediss\""),
            ("--repeat 0", "'0'"),
            ("--repeat", "--repeat"),
            ("--speed", "--speed"),
            ("--profile", "[PATH]"),
        ] {
            let text = parse(line).unwrap_err().to_string();
            assert!(text.contains(named), "{line}: {text}");
        }
    }
}
