//! A free lock, acquired and released again and again in each mode: what the modes cost compared with
//! each other and with a bare key.

use std::time::{Duration, Instant};

use leasehold::store::Permits;
use leasehold::{Mode, blocking};
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::bare_keys::BareKeys;
use crate::measure::commands;
use crate::measure::machine::Usage;
use crate::measure::results::{Lines, Results};
use crate::measure::subject::Role;
use crate::options::Options;
use crate::report::charts::{Bar, Group};
use crate::report::figures::{distinct, number};
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::{Sample, Spread, p50_and_p99};
use crate::sections::blocking::{Cycle, cycle_of, repeat};
use crate::sections::turns::rotated;

/// The reference for the others.
const MUTEX: &str = "a mutex";

const BARE: &str = "bare SET and compare-and-delete";

const SUBJECTS: [(&str, Role); 6] = [
    (BARE, Role::Bound),
    (MUTEX, Role::Ours),
    ("a mutex with a lock-delay", Role::Ours),
    ("shared", Role::Ours),
    ("one of 3 permits", Role::Ours),
    ("3 locks as one", Role::Ours),
];

const COLUMNS: [SampleColumn<Run>; 8] = [
    ("held as", |of| of.first().name.clone()),
    ("servers", |of| of.first().nodes.to_string()),
    ("cycles/s", |of| of.spread(|run| run.cycles_per_second)),
    ("÷ a mutex", |of| fine_spread(ratio(of))),
    ("p50 µs", |of| of.integer(|run| run.p50)),
    ("p99 µs", |of| of.integer(|run| run.p99)),
    ("commands per cycle and server", |of| {
        of.part(|run| run.commands)
    }),
    ("server CPU µs per cycle and server", |of| {
        of.part(|run| run.server_micros)
    }),
];

/// One mode in one round.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    nodes: usize,
    round: usize,
    cycles_per_second: f64,
    p50: f64,
    p99: f64,
    /// Sent by clients, per cycle and server.
    commands: f64,
    /// Of processor time, per cycle and server.
    server_micros: f64,
}

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    for &nodes in options.nodes() {
        for round in 0..options.rounds(1, 3) {
            // Fresh servers for each round, so that nothing is left of the round before.
            let servers = RedisSet::start(nodes);
            init(&servers)?;
            for (name, role) in rotated(&SUBJECTS, round) {
                // The bare commands ask one server after the other, so they are a bound for one server only.
                if options.wants(name) && (nodes == 1 || *role != Role::Bound) {
                    eprintln!("modes: round {}: {name}, {nodes} servers", round + 1);
                    let run = Run::measure(name, &servers, results.round(round), options)?;
                    results.keep(&run)?;
                }
            }
        }
    }
    Ok(())
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("The modes of a lock");
    let runs: Vec<Run> = lines.results()?;
    page.say(
        "One free lock at a time, by the blocking interface. Ratios compare each mode with a mutex in the same round.",
    );
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for nodes in distinct(runs.iter().map(|run| run.nodes)) {
        let mut bars = Vec::new();
        for (name, role) in SUBJECTS {
            if let Some(sample) = Sample::of(&runs, |run| run.name == name && run.nodes == nodes) {
                bars.extend(Bar::of(name, role, ratio(&sample)));
                rows.push(sample);
            }
        }
        groups.push(Group {
            title: format!("{nodes} server(s)"),
            bars,
        });
    }
    let title = "Cycles per second, of those of a mutex";
    page.bars("ratios", title, Some(1.0), &groups)?;
    page.say(comparison(&COLUMNS, rows));
    Ok(())
}

/// Cycles per second, of those of a mutex in the same round.
fn ratio(sample: &Sample<Run>) -> Option<Spread> {
    let reference = |run: &Run, other: &Run| {
        (other.name.as_str(), other.nodes, other.round) == (MUTEX, run.nodes, run.round)
    };
    sample.ratio(reference, |run| run.cycles_per_second)
}

impl Run {
    fn measure(name: &str, servers: &RedisSet, round: usize, options: &Options) -> Fallible<Self> {
        let mut cycle = cycle(name, servers)?;
        let brief = Duration::from_millis(options.pick(200, 500));
        repeat(&mut cycle, brief)?;
        let usage = || Usage::now(std::process::id(), servers);
        let before = usage()?;
        let began = Instant::now();
        let took = repeat(&mut cycle, Duration::from_millis(options.pick(700, 2000)))?;
        let span = began.elapsed().as_secs_f64();
        let [_, used, _] = usage()?.since(&before);
        let (counted, sent) = commands::count(servers, || repeat(&mut cycle, brief))?;
        let cycles = number(took.len());
        let [p50, p99] = p50_and_p99(took);
        let nodes = number(servers.len());
        Ok(Self {
            name: name.into(),
            nodes: servers.len(),
            round,
            cycles_per_second: cycles / span,
            p50,
            p99,
            commands: number(sent) / number(counted.len()) / nodes,
            server_micros: used * 1e6 / cycles / nodes,
        })
    }
}

fn cycle(name: &str, servers: &RedisSet) -> Fallible<Cycle> {
    if name == BARE {
        let mut keys = BareKeys::on(&[servers[0].port()])?;
        return Ok(Box::new(move || {
            keys.set("bare")?;
            keys.delete("bare")
        }));
    }
    let client = blocking::Client::new(RedisStore::new(servers.urls())?);
    let lock = client.lock(name);
    Ok(match name {
        "shared" => cycle_of(lock.mode(Mode::Shared)),
        "one of 3 permits" => cycle_of(lock.mode(Mode::Permit(Permits::new(3)?))),
        "a mutex with a lock-delay" => cycle_of(lock.lock_delay(Duration::from_secs(15))),
        "3 locks as one" => {
            let locks = client.lock_all(["a", "b", "c"]);
            Box::new(move || {
                let mut ended = locks.acquire()?.release().into_iter();
                Ok(ended.try_for_each(|(_, ended)| ended.map(drop))?)
            })
        }
        _ => cycle_of(lock),
    })
}

/// Initializes the quorum of several servers. They are new, so no lock was ever held on them.
fn init(servers: &RedisSet) -> Fallible {
    if servers.len() > 1 {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let store = RedisStore::new(servers.urls())?;
        runtime.enable_all().build()?.block_on(store.init())?;
    }
    Ok(())
}
