//! Runs simulations and prints the violations.
#![expect(clippy::print_stdout, reason = "this is a command")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;

use leasehold_simulation::{Faults, Outcome, run, run_records};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) if arguments.trace => trace(&arguments),
        Ok(arguments) => campaign(&arguments),
        Err(text) => {
            println!(
                "{text}\nusage: sim [--seeds A..B | --trace SEED] [--faults none|all|NAMES] [--jobs N] [--records true]"
            );
            ExitCode::from(2)
        }
    }
}

struct Arguments {
    seeds: Range<u64>,
    faults: Faults,
    trace: bool,
    records: bool,
    /// How many threads run seeds.
    jobs: usize,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut read = Self {
            seeds: 0..1_000,
            faults: Faults::all(),
            trace: false,
            records: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        };
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{word} takes a value"))?;
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("no number: {text}"))
            };
            match word.as_str() {
                "--seeds" => {
                    let (first, last) = value.split_once("..").ok_or("seeds are A..B")?;
                    read.seeds = number(first)?..number(last)?;
                }
                "--trace" => {
                    let seed = number(&value)?;
                    (read.seeds, read.trace) = (seed..seed + 1, true);
                }
                "--jobs" => read.jobs = number(&value)?.max(1) as usize,
                "--faults" => read.faults = value.parse()?,
                "--records" => read.records = value == "true",
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(read)
    }

    fn run(&self, seed: u64, notes: bool) -> Outcome {
        match self.records {
            true => run_records(seed, self.faults),
            false => run(seed, self.faults, notes),
        }
    }
}

fn trace(arguments: &Arguments) -> ExitCode {
    let outcome = arguments.run(arguments.seeds.start, true);
    outcome.trace().for_each(|line| println!("{line}"));
    println!("{outcome}");
    ExitCode::from(u8::from(!outcome.violations.is_empty()))
}

#[derive(Default)]
struct Sums {
    runs: u64,
    grants: u64,
    foreign: u64,
    requests: u64,
    idle: Vec<u64>,
    /// The seeds and the first text of each check.
    broken: BTreeMap<&'static str, (Vec<u64>, String)>,
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.grants += outcome.grants.0;
        self.foreign += outcome.grants.1;
        self.requests += outcome.requests;
        self.idle.extend(&outcome.idle);
        for violation in &outcome.violations {
            let (seeds, _) = self
                .broken
                .entry(violation.check)
                .or_insert_with(|| (Vec::new(), violation.to_string()));
            if seeds.last() != Some(&outcome.seed) {
                seeds.push(outcome.seed);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.grants += other.grants;
        self.foreign += other.foreign;
        self.requests += other.requests;
        self.idle.extend(other.idle);
        for (check, (seeds, text)) in other.broken {
            let known = self.broken.entry(check);
            known.or_insert_with(|| (Vec::new(), text)).0.extend(seeds);
        }
    }

    fn idle_at(&self, part: f64) -> f64 {
        let last = self.idle.len().saturating_sub(1);
        let found = self.idle.get((last as f64 * part) as usize);
        found.map_or(0.0, |micros| *micros as f64 / 1_000.0)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures the speed of the simulation"
)]
fn campaign(arguments: &Arguments) -> ExitCode {
    let began = std::time::Instant::now();
    let mut sums = Sums::default();
    let part = &|job: usize| {
        let mut sums = Sums::default();
        for seed in arguments.seeds.clone().skip(job).step_by(arguments.jobs) {
            sums.add(&arguments.run(seed, false));
        }
        sums
    };
    std::thread::scope(|scope| {
        let parts = (0..arguments.jobs).map(|job| scope.spawn(move || part(job)));
        for part in parts.collect::<Vec<_>>() {
            sums.merge(part.join().expect("a run that does not panic"));
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    sums.idle.sort_unstable();
    for (check, (seeds, text)) in &mut sums.broken {
        seeds.sort_unstable();
        let some: Vec<_> = seeds.iter().take(12).map(u64::to_string).collect();
        println!(
            "{check}: {} runs, seeds {}\n    {text}",
            seeds.len(),
            some.join(" ")
        );
    }
    println!(
        "{} runs, {:.0} a second; {} grants, {} to foreign clients; {:.1} requests per grant",
        sums.runs,
        sums.runs as f64 / seconds,
        sums.grants,
        sums.foreign,
        sums.requests as f64 / sums.grants.max(1) as f64,
    );
    println!(
        "idle time of a free lock: p50 {:.1} ms, p99.9 {:.1} ms, max {:.1} ms",
        sums.idle_at(0.5),
        sums.idle_at(0.999),
        sums.idle_at(1.0),
    );
    ExitCode::from(u8::from(!sums.broken.is_empty()))
}
