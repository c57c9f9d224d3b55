use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
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
    let mut selected = vec!["--workspace"];
    selected.extend(options);
    let mut examples = step::cargo(workspace, "test --locked --doc");
    examples.args(&selected).arg("--").args(&filters);
    let examples = ("the examples in the documentation".to_owned(), examples);
    let programs = Programs {
        selected,
        filters,
        others: vec![examples],
    };
    programs.run(workspace, !skipped.is_empty())
}

/// Test programs, and how they are called.
pub(crate) struct Programs<'a> {
    /// The options of `cargo test` that select them.
    pub(crate) selected: Vec<&'a str>,
    /// What each program is given.
    pub(crate) filters: Vec<&'a str>,
    /// Other calls that run tests, with their names.
    pub(crate) others: Vec<(String, Command)>,
}

impl Programs<'_> {
    /// Builds the test programs, runs two at a time, and prints a summary. `skips` says whether tests are left out by name.
    ///
    /// Many tests wait for a lease to end and use no core, above all the last ones of a program.
    pub(crate) fn run(self, workspace: &Workspace, skips: bool) -> Result<(), String> {
        let programs = self.calls(workspace)?;
        let mut waiting = self.others;
        waiting.extend(programs);
        for (_, program) in &mut waiting {
            equip(program, workspace)?;
            let folder = program.get_current_dir();
            if folder.is_some_and(|folder| folder.ends_with("leasehold-testkit")) {
                // Its stores are examples.
                program.env_remove(PROGRAMS_SECONDS);
            }
            if std::env::var_os(THREADS).is_none() {
                program.env(THREADS, threads().to_string());
            }
        }
        waiting.reverse();
        let (waiting, ended) = (Mutex::new(waiting), Mutex::new(Ended::default()));
        let next = || waiting.lock().ok()?.pop();
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some((name, program)) = next() {
                        println!("     Running {name}");
                        let outcome = step::record(program);
                        ended.lock().map(|mut ended| ended.add(&name, outcome)).ok();
                    }
                });
            }
        });
        let ended = ended.into_inner().map_err(|error| error.to_string())?;
        println!("{}", ended.tally.summary());
        match ended.failed.is_empty() {
            true => ended.tally.verdict(skips),
            false => Err(format!("failed: {}", ended.failed.join(", "))),
        }
    }

    /// Returns a call of each program with its name.
    fn calls(&self, workspace: &Workspace) -> Result<Vec<(String, Command)>, String> {
        let built = build(workspace, &self.selected)?;
        let call = |program: TestProgram| {
            let mut command = program.call();
            command.args(&self.filters);
            (program.file.display().to_string(), command)
        };
        Ok(built.into_iter().map(call).collect())
    }
}

/// Builds the test programs that these options of `cargo test` select.
pub(crate) fn build(workspace: &Workspace, selected: &[&str]) -> Result<Vec<TestProgram>, String> {
    let words = "test --locked --no-run --message-format=json-render-diagnostics";
    let mut build = step::cargo(workspace, words);
    build.args(selected).stderr(Stdio::inherit());
    let output = build.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("the tests cannot be built".into());
    }
    let built = String::from_utf8_lossy(&output.stdout);
    Ok(built.lines().filter_map(test_program).collect())
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) file: PathBuf,
    /// The folder of its package, in which it runs.
    pub(crate) folder: PathBuf,
}

impl TestProgram {
    /// Returns a call of it, as cargo makes it.
    pub(crate) fn call(&self) -> Command {
        let mut command = Command::new(&self.file);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null());
        command
    }
}

/// Reads a message of cargo, and returns the test program that it tells of, if any.
fn test_program(message: &str) -> Option<TestProgram> {
    let field = |name: &str| {
        let (_, rest) = message.split_once(&format!("\"{name}\":\""))?;
        Some(PathBuf::from(rest.split_once('"')?.0))
    };
    let (_, profile) = message.split_once("\"profile\":{")?;
    let (profile, _) = profile.split_once('}')?;
    profile.contains("\"test\":true").then_some(())?;
    Some(TestProgram {
        file: field("executable")?,
        folder: field("manifest_path")?.parent()?.to_owned(),
    })
}

/// What the programs said that ended.
#[derive(Default)]
struct Ended {
    tally: Tally,
    /// The names of those that failed.
    failed: Vec<String>,
}

impl Ended {
    /// Prints what a program wrote.
    fn add(&mut self, name: &str, (written, succeeded): (Vec<u8>, bool)) {
        println!("     Ran {name}");
        // A test may print what is no UTF-8.
        let written = String::from_utf8_lossy(&written);
        print!("{written}");
        written.lines().for_each(|line| self.tally.count(line));
        if !succeeded {
            self.failed.push(name.to_owned());
        }
    }
}

/// How many test programs run at a time.
const AT_ONCE: usize = 2;

/// What the test runner reads.
const THREADS: &str = "RUST_TEST_THREADS";

/// How long random programs run in each arrangement of a store.
pub(crate) const PROGRAMS_SECONDS: &str = "LEASEHOLD_PROGRAMS_SECONDS";

/// Two tests for each core in each program, because many tests use no core. More would delay the others.
fn threads() -> usize {
    thread::available_parallelism().map_or(2, |cores| cores.get() * 2)
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
    fn test_programs_are_told_from_others() {
        let message = |test: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/crates/b/Cargo.toml","target":{{"test":true}},"profile":{{"opt_level":"0","test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = test_program(&message("true", r#""/a/target/it""#));
        let [file, folder] = ["/a/target/it", "/a/crates/b"].map(PathBuf::from);
        assert_eq!(found, Some(TestProgram { file, folder }));
        assert_eq!(test_program(&message("false", r#""/a/target/b""#)), None);
        assert_eq!(test_program(&message("true", "null")), None);
        assert_eq!(test_program(r#"{"reason":"build-finished"}"#), None);
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
