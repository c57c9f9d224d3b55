//! A free lock, taken and given back one after the other, in each way that it can be held: what the
//! ways cost beside each other, and beside a bare key.

use std::time::{Duration, Instant};

use leasehold::{Error, Mode, Permits, Quorum, blocking};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};
use serde::Serialize;

use crate::commands;
use crate::figures::number;
use crate::machine::{self, Ticks};
use crate::options::Options;
use crate::report::{Report, integer, part, row, spread};
use crate::statistics::{Spread, percentile, sorted};

/// What the others are set against.
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

/// One way in one round.
#[derive(Debug, Serialize)]
struct Run {
    name: &'static str,
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

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::create("modes")?;
    report.say(&format!(
        "# The ways to hold a lock\n\nOne at a time, each lock free. {} rounds of {:?} for each way, in \
         turn; in brackets the least and the most of the rounds. Ratios are of the same round.\n",
        options.rounds(),
        options.window(),
    ))?;
    report.say((row(COLUMNS) + &row(COLUMNS.map(|_| "---"))).trim_end())?;
    for &nodes in &options.nodes {
        let mut runs = Vec::new();
        for round in 0..options.rounds() {
            // Of its own for each round, so that nothing is left of the one before.
            let servers = RedisSet::start(nodes);
            form(&servers)?;
            for turn in 0..NAMES.len() {
                // Nobody is always the one who comes after the same other.
                let name = NAMES[(turn + round) % NAMES.len()];
                // The bare commands ask one server after the other: more than one are no bound.
                if options.wants(name) && (nodes == 1 || name != NAMES[0]) {
                    let run = Run::measure(name, &servers, round, options)?;
                    report.keep(&run)?;
                    runs.push(run);
                }
            }
        }
        for name in NAMES {
            let own: Vec<&Run> = runs.iter().filter(|run| run.name == name).collect();
            if !own.is_empty() {
                report.say(row(cells(name, nodes, &own, &runs)).trim_end())?;
            }
        }
    }
    report.say(&format!("\n{}", machine::description()))?;
    println!("\n{}", report.places());
    Ok(())
}

impl Run {
    fn measure(
        name: &'static str,
        servers: &RedisSet,
        round: usize,
        options: &Options,
    ) -> Result<Self, String> {
        let mut cycle = cycle(name, servers)?;
        pass(&mut cycle, options.warm_up())?;
        let pids: Vec<u32> = servers.iter().map(RedisServer::pid).collect();
        let before = Ticks::of_processes(&pids)?;
        let began = Instant::now();
        let took = pass(&mut cycle, options.window())?;
        let span = began.elapsed().as_secs_f64();
        let used = Ticks::of_processes(&pids)?.seconds_since(before);
        let (counted, sent) = commands::count(servers, || pass(&mut cycle, options.count()))?;
        let cycles = number(took.len());
        let figure = |percent| percentile(&took, percent).unwrap_or_default();
        let nodes = number(servers.len());
        Ok(Self {
            name,
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
    let ratios = own.iter().filter_map(|run| {
        let same_round = |other: &&Run| other.name == MUTEX && other.round == run.round;
        let mutex = all.iter().find(same_round)?;
        Some(run.cycles_per_second / mutex.cycles_per_second)
    });
    let ratio = Spread::of(ratios).map_or_else(|| "–".into(), |it| format!("{:.2}", it.median));
    [
        name.to_owned(),
        nodes.to_string(),
        spread(over(|run| run.cycles_per_second)),
        ratio,
        integer(over(|run| run.p50)),
        integer(over(|run| run.p99)),
        part(over(|run| run.commands)),
        part(over(|run| run.server_micros)),
    ]
}

/// Takes what `name` says and gives it back.
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
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    Ok(match urls.as_slice() {
        [url] => blocking::Client::new(RedisMember::new(url)?),
        urls => blocking::Client::new(Quorum::new(RedisMember::all(urls)?)?),
    })
}

/// Several servers become a set by an operator's word that nothing was ever held on them.
fn form(servers: &RedisSet) -> Result<(), String> {
    if servers.len() == 1 {
        return Ok(());
    }
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let members = RedisMember::all(urls).map_err(text)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let formed = runtime.block_on(Quorum::new(members).map_err(text)?.init());
    formed.map_err(text)
}

/// Goes on with cycles for `span`; how long each took in microseconds, sorted.
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
