use std::collections::BTreeMap;
use std::process::Command;
use std::thread;

use crate::programs;
use crate::python::Venv;
use crate::skip;
use crate::step;
use crate::workspace::Workspace;
use crate::zookeeper;

/// Runs every test of the workspace, including doc tests, and prints a summary.
pub(crate) fn run(workspace: &Workspace, skipped: &[String]) -> Result<(), String> {
    let (options, filters) = skip::choice(skipped);
    let mut command = step::cargo(workspace, "test --workspace --locked --no-fail-fast");
    command.args(options).arg("--").args(filters);
    tally(&mut command, workspace, !skipped.is_empty())
}

/// Runs a test command, and prints a summary. `skips` says whether tests are left out by name.
pub(crate) fn tally(
    command: &mut Command,
    workspace: &Workspace,
    skips: bool,
) -> Result<(), String> {
    equip(command, workspace)?;
    if std::env::var_os(THREADS).is_none() {
        command.env(THREADS, threads().to_string());
    }
    let mut tally = Tally::default();
    let outcome = step::follow(command, |line| tally.count(line));
    println!("{}", tally.summary());
    outcome?;
    tally.verdict(skips)
}

/// What the test runner reads.
const THREADS: &str = "RUST_TEST_THREADS";

/// Three times the number of cores, because many tests wait for a lease to end and use no core. More threads
/// would delay the other tests.
fn threads() -> usize {
    thread::available_parallelism().map_or(2, |cores| cores.get() * 3)
}

/// Gives `command` the programs that `setup` made, and tells the tests where Python is.
pub(crate) fn equip(command: &mut Command, workspace: &Workspace) -> Result<(), String> {
    let python = Venv::of_tests(workspace, &[]);
    command
        .env("PATH", programs::search_path(workspace)?)
        .env("LEASEHOLD_TEST_PYTHON", python.program("python"));
    if std::env::var_os("LEASEHOLD_TEST_ZOOKEEPER").is_none() {
        command.env("LEASEHOLD_TEST_ZOOKEEPER", zookeeper::jars(workspace));
    }
    Ok(())
}

/// The sum of the test runner's closing lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    runs: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    filtered: usize,
    /// Ignored tests that give a reason: name and reason, as the test runner prints them.
    excused: Vec<String>,
}

impl Tally {
    fn count(&mut self, line: &str) {
        if let Some((name, reason)) = line.split_once(" ... ignored, ") {
            let name = name.trim_start_matches("test ");
            self.excused.push(format!("{name}: {reason}"));
            return;
        }
        if let Some(excuse) = absent_trait(line) {
            self.excused.push(excuse);
            return;
        }
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        self.runs += 1;
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                "filtered" => self.filtered += number,
                _ => {}
            }
        }
    }

    fn summary(&self) -> String {
        let Self {
            runs,
            passed,
            failed,
            ignored,
            filtered,
            excused,
        } = self;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for excuse in excused {
            *counts.entry(excuse).or_default() += 1;
        }
        let named = counts.iter().map(|(excuse, count)| match count {
            1 => format!("IGNORED {excuse}\n"),
            _ => format!("IGNORED {excuse} ({count} tests)\n"),
        });
        let named: String = named.collect();
        format!(
            "{named}tests: {passed} passed, {failed} failed, {ignored} ignored, {filtered} left out, \
             in {runs} runs"
        )
    }

    /// An ignored test needs a reason, which the summary prints. Without one it needs a `--skip`.
    fn verdict(&self, skips: bool) -> Result<(), String> {
        if self.passed == 0 {
            return Err("no test ran".into());
        }
        let unexcused = self.ignored.saturating_sub(self.excused.len());
        if unexcused > 0 && !skips {
            return Err(format!("{unexcused} tests were ignored without a reason"));
        }
        Ok(())
    }
}

/// A test of the contract suite for an optional trait that the store does not have:
/// `test [no Admin] file::b1_… ... ignored`. Returns the suite and the trait.
fn absent_trait(line: &str) -> Option<String> {
    let (reason, rest) = line.strip_prefix("test [")?.split_once("] ")?;
    let name = rest.strip_suffix("ignored")?.split_whitespace().next()?;
    let suite = name.split("::").next()?;
    Some(format!("contract of {suite}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.count(line));
        tally
    }

    #[test]
    fn closing_lines_are_summed() {
        let sum = tally(&[
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.12s",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.5s",
        ]);
        let counts = [sum.runs, sum.passed, sum.failed, sum.ignored, sum.filtered];
        assert_eq!(counts, [2, 14, 3, 1, 4]);
    }

    #[test]
    fn ignored_test_needs_a_reason() {
        let closing = "test result: ok. 1 passed; 0 failed; 1 ignored";
        let absent = "test [no Admin] file::b1_a_test      ... ignored";
        for (line, named) in [
            (
                "test a::b ... ignored, the new engine",
                "IGNORED a::b: the new engine\n",
            ),
            (absent, "IGNORED contract of file: no Admin\n"),
        ] {
            let sum = tally(&[line, closing]);
            assert!(sum.verdict(false).is_ok());
            assert!(sum.summary().starts_with(named), "{}", sum.summary());
            assert!(tally(&[line, closing, closing]).verdict(false).is_err());
        }
        assert!(tally(&[closing]).verdict(false).is_err());
        assert!(tally(&[closing]).verdict(true).is_ok());
        assert!(tally(&[]).verdict(false).is_err(), "no test ran");
    }
}
