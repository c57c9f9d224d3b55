use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Fallible, failed};
use crate::measure::surroundings::Surroundings;
use crate::options::{Options, folder};

/// One line of a file of raw results.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawLine<T> {
    /// Begins each run.
    Run(Surroundings),
    /// What one subject did in one round.
    Result(T),
    /// A subject that this machine cannot have, and why.
    Skipped(String, String),
    Failed(String),
}

/// The raw results of a section: `target/bench/NAME.jsonl`, with a line for each subject and round.
#[derive(Debug)]
pub(crate) struct Results {
    path: PathBuf,
    file: File,
    runs_before: usize,
}

impl Results {
    /// Starts a new file, or continues the existing one with `--append`.
    pub(crate) fn open(name: &str, options: &Options) -> Fallible<Self> {
        let path = path(name);
        let folder = folder();
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        let runs_before = if options.append && Lines::exist(name) {
            Lines::read(name)?.runs.len()
        } else {
            0
        };
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(options.append)
            .truncate(!options.append)
            .open(&path);
        let file = file.map_err(|error| failed(&path, &error))?;
        let mut results = Self {
            path,
            file,
            runs_before,
        };
        results.write(&RawLine::<()>::Run(Surroundings::now(options)))?;
        Ok(results)
    }

    pub(crate) fn keep(&mut self, result: &impl Serialize) -> Fallible {
        self.write(&RawLine::Result(result))
    }

    /// Reports and records that a subject is not measured.
    pub(crate) fn skip(&mut self, name: &str, why: &str) -> Fallible {
        eprintln!("SKIPPED: {name}: {why}");
        self.write(&RawLine::<()>::Skipped(name.into(), why.into()))
    }

    /// Reports and records that the measurement of a subject failed.
    pub(crate) fn fail(&mut self, why: &str) -> Fallible {
        eprintln!("FAILED: {why}");
        self.write(&RawLine::<()>::Failed(why.into()))
    }

    /// Returns a number for the round that is unique in the file, so that ratios stay within one round
    /// even if a run was added to an earlier one.
    pub(crate) fn round(&self, round: usize) -> usize {
        self.runs_before * 1000 + round
    }

    fn write<T: Serialize>(&mut self, line: &RawLine<T>) -> Fallible {
        let line = serde_json::to_string(line)?;
        Ok(writeln!(self.file, "{line}").map_err(|error| failed(&self.path, &error))?)
    }
}

/// All lines of a section.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) runs: Vec<Surroundings>,
    results: Vec<Value>,
    /// Each skipped subject once, with the reason.
    pub(crate) skipped: Vec<(String, String)>,
    pub(crate) failed: Vec<String>,
}

impl Lines {
    pub(crate) fn exist(name: &str) -> bool {
        path(name).is_file()
    }

    pub(crate) fn read(name: &str) -> Fallible<Self> {
        let path = path(name);
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        Ok(Self::parse(&text).map_err(|error| failed(&path, &error))?)
    }

    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut lines = Self::default();
        for line in text.lines() {
            match serde_json::from_str::<RawLine<Value>>(line)? {
                RawLine::Run(surroundings) => lines.runs.push(surroundings),
                RawLine::Result(result) => lines.results.push(result),
                RawLine::Failed(why) => lines.failed.push(why),
                RawLine::Skipped(name, why) => {
                    if !lines.skipped.iter().any(|(other, _)| *other == name) {
                        lines.skipped.push((name, why));
                    }
                }
            }
        }
        Ok(lines)
    }

    /// The results, as the section kept them.
    pub(crate) fn results<T: DeserializeOwned>(&self) -> Fallible<Vec<T>> {
        let results = self.results.iter().map(T::deserialize);
        let results = results.collect::<Result<_, _>>();
        Ok(results.map_err(|error| format!("a raw result: {error}"))?)
    }
}

fn path(name: &str) -> PathBuf {
    folder().join(name).with_extension("jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let lines = [
            RawLine::Result(7),
            RawLine::Skipped("a".into(), "not here".into()),
            RawLine::Result(8),
            RawLine::Skipped("a".into(), "not here".into()),
            RawLine::Failed("b".into()),
        ];
        let text = lines.map(|line| serde_json::to_string(&line).expect("a line"));
        let lines = Lines::parse(&text.join("\n")).expect("lines");
        assert_eq!(lines.results::<u64>().unwrap(), [7, 8]);
        assert_eq!(lines.skipped, [("a".into(), "not here".into())]);
        assert_eq!(lines.failed, ["b"]);
        assert!(lines.results::<String>().is_err());
        assert!(Lines::parse("{}").is_err());
    }
}
