use std::collections::BTreeMap;

use serde::Deserialize;

/// The counts that are kept in the tree.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    /// What built the program that was counted: another compiler makes other instructions.
    #[serde(default)]
    pub(crate) rustc: String,
    #[serde(default)]
    pub(crate) paths: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Of one cycle.
    pub(crate) instructions: u64,
    /// By how many percent a count may be above it.
    pub(crate) tolerance: u64,
}

/// How a count compares with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    /// Above the tolerance.
    Slower,
    /// So far below the recorded count that it no longer guards anything.
    Faster,
    Unknown,
}

impl Counts {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    pub(crate) fn judge(&self, path: &str, counted: u64) -> Verdict {
        let Some(Entry {
            instructions,
            tolerance,
        }) = self.paths.get(path)
        else {
            return Verdict::Unknown;
        };
        if counted * 100 > instructions * (100 + tolerance) {
            Verdict::Slower
        } else if counted * 100 < instructions * 100u64.saturating_sub(*tolerance) {
            Verdict::Faster
        } else {
            Verdict::Holds
        }
    }

    pub(crate) fn record(&mut self, path: &str, counted: u64) {
        let tolerance = self.paths.get(path).map_or(USUAL, |entry| entry.tolerance);
        let entry = Entry {
            instructions: counted,
            tolerance,
        };
        self.paths.insert(path.to_owned(), entry);
    }

    pub(crate) fn format(&self) -> String {
        let mut text = format!(
            "# Instructions of one cycle of each hot path, and by how many percent a count may be above\n\
             # that. Written by `cargo xtask instructions --record`.\n\nrustc = \"{}\"\n",
            self.rustc
        );
        for (path, entry) in &self.paths {
            text += &format!(
                "\n[paths.{path}]\ninstructions = {}\ntolerance = {}\n",
                entry.instructions, entry.tolerance
            );
        }
        text
    }
}

/// The tolerance of a path that has none yet, in percent.
const USUAL: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let text = "rustc = \"rustc 1\"\n[paths.redis]\ninstructions = 1000\ntolerance = 3\n";
        Counts::parse(text).unwrap()
    }

    #[test]
    fn a_count_is_judged_by_its_own_tolerance() {
        for (counted, verdict) in [
            (1030, Verdict::Holds),
            (1031, Verdict::Slower),
            (970, Verdict::Holds),
            (969, Verdict::Faster),
        ] {
            assert_eq!(counts().judge("redis", counted), verdict, "{counted}");
        }
        assert_eq!(counts().judge("memory", 1), Verdict::Unknown);
    }

    #[test]
    fn what_is_recorded_can_be_read_again_and_keeps_its_tolerance() {
        let mut counts = counts();
        counts.record("redis", 900);
        counts.record("hand-over", 7);
        assert_eq!(Counts::parse(&counts.format()), Ok(counts));
        let mut other = self::counts();
        other.record("redis", 900);
        assert_eq!(other.judge("redis", 928), Verdict::Slower);
    }

    #[test]
    fn a_misspelt_entry_is_refused() {
        assert!(Counts::parse("[paths.redis]\ninstructions = 1\ntolerence = 3\n").is_err());
    }
}
