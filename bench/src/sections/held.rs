//! Many locks held by one process: what it costs to keep them.

use std::time::{Duration, Instant};

use leasehold_testkit::servers::{RedisSet, Reply};
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::commands::CommandStats;
use crate::measure::record::{Renewals, Taken};
use crate::measure::results::{Lines, Results};
use crate::measure::subject::Subject;
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::figures::number;
use crate::report::page::{Column, Page, table};
use crate::report::statistics::mean;

/// How many locks, on how many servers.
const SCENES: [(usize, usize); 3] = [(10_000, 1), (100_000, 1), (10_000, 5)];

const HOLDER: Subject = Subject::ours("the holder", "held", "multi");

const COLUMNS: [Column<Run>; 12] = [
    ("locks", |run| run.locks.to_string()),
    ("servers", |run| run.nodes.to_string()),
    ("TTL s", |run| rounded(run.ttl)),
    ("client CPU", |run| {
        format!("{:.1} %", run.client_cpu * 100.0)
    }),
    ("all servers' CPU", |run| {
        format!("{:.1} %", run.server_cpu * 100.0)
    }),
    ("memory per lock, bytes", |run| rounded(run.bytes_per_lock)),
    ("scripts/s mean", |run| {
        rounded(mean(&run.scripts).unwrap_or_default())
    }),
    ("scripts/s most", |run| rounded(most(&run.scripts))),
    ("commands/s mean", |run| {
        rounded(mean(&run.commands).unwrap_or_default())
    }),
    ("commands/s most", |run| rounded(most(&run.commands))),
    ("between renewals, longest", |run| {
        run.of_ttl(run.watch.longest)
    }),
    ("left at a renewal, least", |run| {
        run.of_ttl(run.watch.least_left)
    }),
];

/// A number of locks, held for longer than their TTL.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    locks: usize,
    nodes: usize,
    round: usize,
    /// In seconds.
    ttl: f64,
    taken_in: f64,
    /// Of one core, while the locks are held.
    client_cpu: f64,
    server_cpu: f64,
    /// Resident memory of the client.
    bytes_per_lock: f64,
    /// For each second, on all servers: scripts that were called, ...
    scripts: Vec<f64>,
    /// ... and commands that were executed, those of scripts too.
    commands: Vec<f64>,
    watch: Renewals,
}

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    for (locks, nodes) in SCENES {
        if !options.nodes().contains(&nodes) || (options.quick && locks * nodes > 10_000) {
            continue;
        }
        for round in 0..options.rounds(1, 1) {
            eprintln!("held: round {}: {locks} locks, {nodes} servers", round + 1);
            match Run::measure(locks, nodes, results.round(round), options) {
                Ok(run) => results.keep(&run)?,
                Err(why) => results.fail(&format!("{locks} locks, {nodes} servers: {why}"))?,
            }
        }
    }
    Ok(())
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("Many locks in one process");
    let runs: Vec<Run> = lines.results()?;
    page.say(include_str!("../../pages/held.md"));
    let lost = |run: &Run| {
        let (lost, locks, nodes) = (run.watch.lost, run.locks, run.nodes);
        (lost > 0).then(|| format!("LOST: {lost} of {locks} locks, {nodes} servers."))
    };
    let lost: Vec<String> = runs.iter().filter_map(lost).collect();
    page.say(table(&COLUMNS, runs));
    lost.into_iter().for_each(|text| page.say(text));
    Ok(())
}

fn rounded(value: f64) -> String {
    format!("{value:.0}")
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

impl Run {
    fn of_ttl(&self, seconds: f64) -> String {
        let percent = 100.0 * seconds / self.ttl;
        format!("{seconds:.1} s ({percent:.0} % of the TTL)")
    }

    fn measure(locks: usize, nodes: usize, round: usize, options: &Options) -> Fallible<Self> {
        let servers = RedisSet::start(nodes);
        // Each lock is renewed several times.
        let (ttl, seconds) = options.pick((6, 8_usize), (30, 33));
        let scenario = Scenario {
            hold: Duration::from_secs(ttl),
            ..Scenario::without_pauses(Keys::Each, locks)
        };
        // The locks end with their servers.
        let mut worker = WorkerProcess::start(&HOLDER, &scenario, &servers)?;
        let taken: Taken = worker.ask_for("hold")?;
        let (mut scripts, mut commands) = (Vec::new(), Vec::new());
        let usage = worker.usage(&servers)?;
        let mut before = Done::by(&servers)?;
        let mut next = Instant::now();
        for _ in 0..seconds {
            next += Duration::from_secs(1);
            // One figure for each second.
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let now = Done::by(&servers)?;
            scripts.push(now.scripts - before.scripts);
            commands.push(now.commands - before.commands);
            before = now;
        }
        let [client, server, _] = worker.usage(&servers)?.since(&usage);
        let watch = worker.ask_for("report")?;
        let bytes = (taken.resident - taken.resident_before) * 1024.0 * 1024.0;
        Ok(Self {
            locks,
            nodes,
            round,
            ttl: scenario.hold.as_secs_f64(),
            taken_in: taken.seconds,
            client_cpu: client / number(seconds),
            server_cpu: server / number(seconds),
            bytes_per_lock: bytes / number(locks),
            scripts,
            commands,
            watch,
        })
    }
}

/// What servers have done since they began.
#[derive(Debug, Default)]
struct Done {
    scripts: f64,
    commands: f64,
}

impl Done {
    fn by(servers: &RedisSet) -> Fallible<Self> {
        let mut all = Self::default();
        for server in servers.iter() {
            let Reply::Bulk(stats) = server.command(&["INFO", "stats", "commandstats"]) else {
                return Err("INFO".into());
            };
            all.add(&stats).ok_or_else(|| format!("INFO: {stats}"))?;
        }
        Ok(all)
    }

    fn add(&mut self, stats: &str) -> Option<()> {
        let total = |line: &str| -> Option<f64> {
            line.strip_prefix("total_commands_processed:")?.parse().ok()
        };
        self.commands += stats.lines().find_map(total)?;
        let scripts = CommandStats::of(stats).into_iter();
        let scripts = scripts.filter(CommandStats::is_script);
        self.scripts += scripts.map(|script| script.calls).sum::<f64>();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_from_what_they_call() {
        let stats = "total_commands_processed:12\r\n\r\ncmdstat_evalsha:calls=3,usec=9\r\n\
                     cmdstat_pexpire:calls=9,usec=1\r\n";
        let mut done = Done::default();
        done.add(stats).unwrap();
        assert_eq!((done.scripts, done.commands), (3.0, 12.0));
        assert!(done.add("x:1").is_none());
    }
}
