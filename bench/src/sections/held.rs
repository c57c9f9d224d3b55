//! Many locks held by one process: what it costs to keep them.

use std::thread;
use std::time::{Duration, Instant};

use leasehold_testkit::servers::{RedisSet, Reply};

use crate::error::Fallible;
use crate::measure::record::{Renewals, Taken};
use crate::measure::servers::Servers;
use crate::measure::subject::{Program, Subject};
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::statistics::number;
use crate::report::table::{Column, Row, Run, table};

/// How many locks, on how many servers. `--quick` measures the first alone.
const SCENES: [(&str, usize, usize); 3] = [
    ("10,000 locks, one server", 10_000, 1),
    (HUNDRED_THOUSAND, 100_000, 1),
    ("10,000 locks, five servers", 10_000, 5),
];
const HUNDRED_THOUSAND: &str = "100,000 locks, one server";

const HOLDER: Subject = Subject::new("the holder", Program::Own("redis/leasehold-held"), "multi");

/// What it costs a client to hold many locks while nothing else happens.
#[derive(Debug)]
pub(super) struct Held {
    /// Of one core, while the locks are held.
    pub(super) client_cpu: f64,
    pub(super) server_cpu: f64,
    /// Resident memory of the client.
    bytes_per_lock: f64,
    /// Requests that the servers received per second: the mean, and the most in one second.
    pub(super) requests_mean: f64,
    requests_most: f64,
    /// In parts of the TTL.
    longest: f64,
    least_left: f64,
    pub(super) lost: usize,
}

const COLUMNS: [Column<Held>; 10] = [
    ("locks", |row| row.subject().into()),
    ("client CPU", |row| row.percent(|seen| seen.client_cpu)),
    ("servers' CPU", |row| row.percent(|seen| seen.server_cpu)),
    ("memory per lock, bytes", |row| {
        row.integer(|seen| seen.bytes_per_lock)
    }),
    ("commands/s mean", |row| {
        row.integer(|seen| seen.requests_mean)
    }),
    ("commands/s most", |row| {
        row.integer(|seen| seen.requests_most)
    }),
    ("between renewals, longest, of the TTL", |row| {
        row.percent(|seen| seen.longest)
    }),
    ("left at a renewal, least, of the TTL", |row| {
        row.percent(|seen| seen.least_left)
    }),
    ("lost", |row| row.total(|seen| seen.lost)),
    ("rounds", |row| row.rounds()),
];

pub(super) fn measure(options: &Options, page: &mut Page) -> Fallible {
    page.say(include_str!("../../pages/held.md"));
    let mut runs = Vec::new();
    for &(subject, locks, nodes) in &SCENES[..options.pick(1, SCENES.len())] {
        for round in 0..options.rounds(1) {
            eprintln!("round {}: {subject}", round + 1);
            // Each lock is renewed several times.
            let (ttl, seconds) = options.pick((6, 8), (30, 33));
            let scenario = scenario(locks, Duration::from_secs(ttl));
            // The locks end with their servers.
            let (servers, none) = (RedisSet::start(nodes), Duration::ZERO);
            let windows = [Duration::from_secs(1)].repeat(seconds);
            match Held::measure(&HOLDER, &scenario, &servers, none, &windows, commands) {
                Ok(seen) => runs.push(Run {
                    subject,
                    round,
                    seen,
                }),
                Err(why) => page.fail(&format!("{subject}: {why}")),
            }
        }
    }
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
    let of = |value: fn(&Held) -> f64| {
        Row::of(&runs, |run| run.subject == HUNDRED_THOUSAND)?.over(value)
    };
    let what = format!("CPU to hold {HUNDRED_THOUSAND}, TTL 30 s");
    let of_a_core = |value| format!("{:.1} % of a core", value * 100.0);
    page.figure(&what, false, of_a_core, of(|seen| seen.client_cpu), &[]);
    let memory = of(|seen| seen.bytes_per_lock);
    let bytes = |value| format!("{value:.0} bytes");
    page.figure("memory for each of these locks", false, bytes, memory, &[]);
    Ok(())
}

/// Takes this many locks, and holds them for good.
pub(super) fn scenario(locks: usize, ttl: Duration) -> Scenario {
    Scenario {
        hold: ttl,
        ..Scenario::without_pauses(Keys::Each, locks)
    }
}

impl Held {
    /// Takes the locks, pauses, and counts the requests in each of the windows, which follow each other.
    pub(super) fn measure<S: Servers>(
        subject: &Subject,
        scenario: &Scenario,
        servers: &S,
        pause: Duration,
        windows: &[Duration],
        requests: impl Fn(&S) -> Fallible<f64>,
    ) -> Fallible<Self> {
        let mut worker = WorkerProcess::start(subject, scenario, servers)?;
        let taken: Taken = worker.ask_for("hold")?;
        thread::sleep(pause);
        let began = requests(servers)?;
        let usage = worker.usage(servers)?;
        let (mut before, mut most, mut used) = (began, 0.0_f64, [0.0; 3]);
        let mut next = Instant::now();
        for window in windows {
            next += *window;
            // It counts what happens meanwhile.
            thread::sleep(next.saturating_duration_since(Instant::now()));
            used = worker.usage(servers)?.since(&usage);
            let now = requests(servers)?;
            most = most.max((now - before) / window.as_secs_f64());
            before = now;
        }
        let renewals: Renewals = worker.ask_for("report")?;
        let seconds = windows.iter().sum::<Duration>().as_secs_f64();
        let ttl = scenario.hold.as_secs_f64();
        let bytes = (taken.resident - taken.resident_before) * 1024.0 * 1024.0;
        Ok(Self {
            client_cpu: used[0] / seconds,
            server_cpu: used[1] / seconds,
            bytes_per_lock: bytes / number(scenario.waiters),
            requests_mean: (before - began) / seconds,
            requests_most: most,
            longest: renewals.longest / ttl,
            least_left: renewals.least_left / ttl,
            lost: renewals.lost,
        })
    }
}

/// How many commands the servers have executed since they began.
fn commands(servers: &RedisSet) -> Fallible<f64> {
    let mut all = 0.0;
    for server in servers.iter() {
        let reply = server.command(&["INFO", "stats"]);
        let Reply::Bulk(stats) = &reply else {
            return Err(format!("INFO: {reply:?}").into());
        };
        let name = "total_commands_processed:";
        let total = stats.lines().find_map(|line| line.strip_prefix(name));
        all += total.ok_or("INFO has no total")?.parse::<f64>()?;
    }
    Ok(all)
}
