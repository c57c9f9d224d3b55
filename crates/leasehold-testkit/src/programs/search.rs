//! Runs random programs for a time, and shrinks the first one that breaks a promise.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::store::locked;
use proptest::strategy::{Strategy as _, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::generate::programs;
use super::history::as_text;
use super::operation::Program;
use super::run::{Outcome, Testbed};
use crate::harness::Suite;

/// How long and how a search goes on. Environment variables change it.
#[derive(Clone, Debug)]
struct Settings {
    /// How long.
    span: Duration,
    /// The first seed.
    seed: u64,
    /// How many programs run at once, each with servers of its own.
    width: usize,
    /// How often a program that failed is run again.
    repeats: usize,
    /// How long a program that failed is made smaller.
    shrink: Duration,
    /// A file with a program to run, in place of random ones.
    program: Option<String>,
}

impl Settings {
    fn read() -> Self {
        Self {
            span: Duration::from_secs(number("SECONDS", 20)),
            seed: number("SEED", SystemClock.wall().as_micros()),
            width: number("WIDTH", 3) as usize,
            repeats: number("REPEATS", 20) as usize,
            shrink: Duration::from_secs(number("SHRINK", 180)),
            program: variable("FILE"),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long the operator of a test wants it to take"
    )]
    std::env::var(format!("LEASEHOLD_PROGRAMS_{name}")).ok()
}

fn number(name: &str, usual: u64) -> u64 {
    variable(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// A program that broke a promise.
struct Failure {
    seed: u64,
    program: Program,
    outcome: Outcome,
    after: Duration,
    programs: usize,
}

/// Runs random programs on the store, and returns a report of the first failure.
pub(crate) fn search(suite: Suite) -> Result<String, String> {
    let settings = Settings::read();
    if let Some(file) = &settings.program {
        return replay(suite, &settings, file);
    }
    let begun = SystemClock.now();
    let (count, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..settings.width {
            scope.spawn(|| {
                let testbed = Testbed::start(suite);
                while SystemClock.now() < begun + settings.span && !is_over.load(Ordering::SeqCst) {
                    let number = count.fetch_add(1, Ordering::SeqCst);
                    let seed = settings.seed.wrapping_add(number as u64);
                    let program = tree(&testbed, seed).current();
                    let outcome = testbed.run(&program);
                    if !outcome.violations.is_empty() && !is_over.swap(true, Ordering::SeqCst) {
                        *locked(&failure) = Some(Failure {
                            seed,
                            program,
                            outcome,
                            after: SystemClock.now().since(begun),
                            programs: number + 1,
                        });
                    }
                }
            });
        }
    });
    let count = count.load(Ordering::SeqCst);
    let seed = settings.seed;
    match failure.into_inner().unwrap_or_default() {
        None => Ok(format!("{count} programs from seed {seed} on")),
        Some(failure) => Err(explain(suite, &settings, failure)),
    }
}

/// Returns the program of a seed, and all smaller ones.
fn tree(testbed: &Testbed, seed: u64) -> impl ValueTree<Value = Program> + use<> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let program = programs(testbed.capabilities).new_tree(&mut runner);
    program.expect("every choice is valid")
}

/// Makes the program smaller, runs it again several times, and describes what happened.
fn explain(suite: Suite, settings: &Settings, failure: Failure) -> String {
    let testbed = Testbed::start(suite);
    let promise = failure.outcome.violations[0].promise;
    let mut smallest = (failure.program.clone(), failure.outcome.clone());
    let mut tree = tree(&testbed, failure.seed);
    let end = SystemClock.now() + settings.shrink;
    let mut is_smaller = tree.simplify();
    while is_smaller && SystemClock.now() < end {
        let program = tree.current();
        is_smaller = match fails(&testbed, &program, promise, end) {
            Some(outcome) => {
                smallest = (program, outcome);
                tree.simplify()
            }
            None => tree.complicate(),
        };
    }
    let (program, outcome) = smallest;
    let failed = failures(&testbed, &program, settings.repeats);
    let times = settings.repeats;
    let Failure {
        seed,
        after,
        programs,
        ..
    } = failure;
    let mut report = format!(
        "seed {seed} broke a promise after {after:.1?}, as program {programs}; its smallest form fails {failed} of {times} times\n"
    );
    describe(&mut report, &program, &outcome);
    report
}

/// Timing varies, so a program has two chances to fail.
fn fails(testbed: &Testbed, program: &Program, promise: &str, end: BootInstant) -> Option<Outcome> {
    for _ in 0..2 {
        let outcome = testbed.run(program);
        if outcome.violations.iter().any(|it| it.promise == promise) {
            return Some(outcome);
        }
        if SystemClock.now() > end {
            break;
        }
    }
    None
}

fn failures(testbed: &Testbed, program: &Program, times: usize) -> usize {
    let fails = |_: &usize| !testbed.run(program).violations.is_empty();
    (0..times).filter(fails).count()
}

fn describe(report: &mut String, program: &Program, outcome: &Outcome) {
    for violation in &outcome.violations {
        let _ = writeln!(report, "{}: {}", violation.promise, violation.text);
    }
    let text = serde_json::to_string(program).expect("a program has a text form");
    let _ = writeln!(
        report,
        "\nprogram (LEASEHOLD_PROGRAMS_FILE runs it again):\n{text}\n"
    );
    report.push_str(&as_text(&outcome.events));
}

/// Runs the program of a file.
fn replay(suite: Suite, settings: &Settings, file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let program: Program =
        serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    let testbed = Testbed::start(suite);
    let outcomes = (0..settings.repeats).map(|_| testbed.run(&program));
    let failed: Vec<Outcome> = outcomes
        .filter(|outcome| !outcome.violations.is_empty())
        .collect();
    let count = format!("failed {} of {} times\n", failed.len(), settings.repeats);
    match failed.first() {
        None => Ok(count),
        Some(outcome) => {
            let mut report = count;
            describe(&mut report, &program, outcome);
            Err(report)
        }
    }
}
