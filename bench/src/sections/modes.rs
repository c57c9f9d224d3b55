//! A free lock, acquired and released again and again in each mode: what the modes cost compared with
//! each other and with a bare key.

use std::time::{Duration, Instant};

use leasehold::store::Permits;
use leasehold::{Error, Mode, blocking};
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};
use serde::{Deserialize, Serialize};

use crate::measure::commands;
use crate::measure::machine::CpuTime;
use crate::measure::results::{Lines, Results};
use crate::options::Options;
use crate::report::charts::{Bar, Group, Role, bars};
use crate::report::figures::{distinct, number};
use crate::report::page::{Page, fine_spread, integer, part, spread, table};
use crate::report::statistics::{Spread, percentile, sorted};
use crate::sections::Section;

pub(crate) const SECTION: Section = Section {
    name: "modes",
    title: "The modes of a lock",
    measure,
    tell,
};

/// The reference for the others.
const MUTEX: &str = "a mutex";

const NAMES: [&str; 6] = [
    "bare SET and compare-and-delete",
    MUTEX,
    "a mutex with a lock-delay",
    "shared",
    "one of 3 permits",
    "3 locks as one",
];

const COLUMNS: [&str; 8] = [
    "held as",
    "servers",
    "cycles/s",
    "÷ a mutex",
    "p50 µs",
    "p99 µs",
    "commands per cycle and server",
    "server CPU µs per cycle and server",
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

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for &nodes in options.nodes() {
        for round in 0..options.rounds(1, 3) {
            // Fresh servers for each round, so that nothing is left of the round before.
            let servers = RedisSet::start(nodes);
            init(&servers)?;
            for turn in 0..NAMES.len() {
                // Rotates the order, so that no subject always follows the same other one.
                let name = NAMES[(turn + round) % NAMES.len()];
                // The bare commands ask one server after the other, so they are a bound for one server only.
                if options.wants(name) && (nodes == 1 || name != NAMES[0]) {
                    eprintln!("modes: round {}: {name}, {nodes} servers", round + 1);
                    let run = Run::measure(name, &servers, results.round(round), options)?;
                    results.keep(&run)?;
                }
            }
        }
    }
    Ok(())
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    let runs: Vec<Run> = lines.results()?;
    page.say(
        "One free lock at a time, by the blocking interface. Ratios compare each mode with a mutex in the same round.",
    );
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    for nodes in distinct(runs.iter().map(|run| run.nodes)) {
        groups.push(Group {
            title: format!("{nodes} server(s)"),
            bars: NAMES
                .into_iter()
                .filter_map(|name| bar(name, nodes, &runs))
                .collect(),
        });
        for name in NAMES {
            let of = |run: &&Run| run.name == name && run.nodes == nodes;
            let own: Vec<&Run> = runs.iter().filter(of).collect();
            if !own.is_empty() {
                rows.push(cells(name, nodes, &own, &runs));
            }
        }
    }
    let title = "Cycles per second, of those of a mutex";
    page.chart("ratios", title, bars(title, Some(1.0), &groups)?);
    page.say(table(COLUMNS, rows));
    Ok(())
}

fn bar(name: &str, nodes: usize, runs: &[Run]) -> Option<Bar> {
    let of = |run: &&Run| run.name == name && run.nodes == nodes;
    let role = if name == NAMES[0] {
        Role::Bound
    } else {
        Role::Ours
    };
    Some(Bar {
        label: name.into(),
        value: ratio(runs.iter().filter(of), runs)?,
        role,
    })
}

/// Its cycles per second, of those of a mutex in the same round.
fn ratio<'a>(own: impl Iterator<Item = &'a Run>, all: &[Run]) -> Option<Spread> {
    Spread::of(own.filter_map(|run| {
        let same_round = |other: &&Run| {
            (other.name.as_str(), other.nodes, other.round) == (MUTEX, run.nodes, run.round)
        };
        let mutex = all.iter().find(same_round)?;
        Some(run.cycles_per_second / mutex.cycles_per_second)
    }))
}

impl Run {
    fn measure(
        name: &'static str,
        servers: &RedisSet,
        round: usize,
        options: &Options,
    ) -> Result<Self, String> {
        let mut cycle = cycle(name, servers)?;
        pass(&mut cycle, Duration::from_millis(options.pick(200, 500)))?;
        let pids: Vec<u32> = servers.iter().map(RedisServer::pid).collect();
        let before = CpuTime::of_processes(&pids)?;
        let began = Instant::now();
        let took = pass(&mut cycle, Duration::from_millis(options.pick(700, 2000)))?;
        let span = began.elapsed().as_secs_f64();
        let used = CpuTime::of_processes(&pids)?.seconds_since(before);
        let (counted, sent) = commands::count(servers, || {
            pass(&mut cycle, Duration::from_millis(options.pick(200, 500)))
        })?;
        let cycles = number(took.len());
        let figure = |percent| percentile(&took, percent).unwrap_or_default();
        let nodes = number(servers.len());
        Ok(Self {
            name: name.into(),
            nodes: servers.len(),
            round,
            cycles_per_second: cycles / span,
            p50: figure(50),
            p99: figure(99),
            commands: number(sent) / number(counted.len()) / nodes,
            server_micros: used * 1e6 / cycles / nodes,
        })
    }
}

fn cells(name: &str, nodes: usize, own: &[&Run], all: &[Run]) -> [String; COLUMNS.len()] {
    let over = |value: fn(&Run) -> f64| Spread::of(own.iter().map(|run| value(run)));
    [
        name.to_owned(),
        nodes.to_string(),
        spread(over(|run| run.cycles_per_second)),
        fine_spread(ratio(own.iter().copied(), all)),
        integer(over(|run| run.p50)),
        integer(over(|run| run.p99)),
        part(over(|run| run.commands)),
        part(over(|run| run.server_micros)),
    ]
}

/// Acquires and releases a lock once.
type Cycle = Box<dyn FnMut() -> Result<(), String>>;

fn cycle(name: &'static str, servers: &RedisSet) -> Result<Cycle, String> {
    if name == NAMES[0] {
        return bare(servers);
    }
    let client = client(servers).map_err(text)?;
    let lock = client.lock(name);
    let lock = match name {
        "shared" => lock.mode(Mode::Shared),
        "one of 3 permits" => lock.mode(Mode::Permit(Permits::new(3).map_err(text)?)),
        "a mutex with a lock-delay" => lock.lock_delay(Duration::from_secs(15)),
        "3 locks as one" => {
            let locks = client.lock_all(["a", "b", "c"]);
            return Ok(Box::new(move || {
                let guards = locks.acquire().map_err(text)?;
                let mut ended = guards.release().into_iter();
                ended.try_for_each(|(_, ended)| ended.map(drop).map_err(text))
            }));
        }
        _ => lock,
    };
    Ok(Box::new(move || {
        let guard = lock.acquire().map_err(text)?;
        guard.release().map(drop).map_err(text)
    }))
}

/// The key that any lock library writes, and nothing else: no fence, no clock, no queue.
fn bare(servers: &RedisSet) -> Result<Cycle, String> {
    const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                        return redis.call('DEL', KEYS[1]) end return 0";
    let server = servers.iter().next().ok_or("no server")?;
    let Reply::Bulk(sha) = server.command(&["SCRIPT", "LOAD", FREE]) else {
        return Err("SCRIPT LOAD".into());
    };
    let mut connection = server.connect();
    let mut call = move |words: &[&str], right: Reply| match connection
        .call(words)
        .map_err(|error| error.to_string())?
    {
        reply if reply == right => Ok(()),
        reply => Err(format!("{words:?}: {reply:?}")),
    };
    Ok(Box::new(move || {
        let taken = Reply::Status("OK".into());
        call(&["SET", "bare", "token", "NX", "PX", "30000"], taken)?;
        call(&["EVALSHA", &sha, "1", "bare", "token"], Reply::Integer(1))
    }))
}

fn client(servers: &RedisSet) -> Result<blocking::Client, Error> {
    store(servers).map(blocking::Client::new)
}

fn store(servers: &RedisSet) -> Result<RedisStore, Error> {
    RedisStore::new(servers.urls())
}

/// Initializes the quorum of several servers. They are new, so no lock was ever held on them.
fn init(servers: &RedisSet) -> Result<(), String> {
    if servers.len() == 1 {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let store = store(servers).map_err(text)?;
    runtime.block_on(store.init()).map_err(text)
}

/// Repeats the cycle for `span`, and returns the sorted durations in microseconds.
fn pass(cycle: &mut Cycle, span: Duration) -> Result<Vec<f64>, String> {
    let end = Instant::now() + span;
    let mut took = Vec::new();
    loop {
        let began = Instant::now();
        if began >= end {
            return Ok(sorted(took));
        }
        cycle()?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
}

fn text(error: Error) -> String {
    error.to_string()
}
