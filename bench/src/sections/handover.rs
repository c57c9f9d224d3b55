//! A lock that always changes hands: how long it takes from a release to the next holder's acquire.

use std::thread;
use std::time::Duration;

use leasehold_testkit::servers::RedisSet;

use crate::error::Fallible;
use crate::measure::record::Record;
use crate::measure::servers::Servers;
use crate::measure::subject::Program::Own;
use crate::measure::subject::{LEASEHOLD, NODE_REDLOCK, PYTHON_REDIS_LOCK, REDIS_PY, Subject};
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::figures::Figures;
use crate::report::page::Page;
use crate::report::statistics::number;
use crate::report::table::{Column, Row, Run, table};
use crate::sections::turns;

/// The bound of what a library can reach on one server.
const BOUND: &str = "BLPOP, redis crate";

const EACH: &str = "leasehold, a client each";

const SUBJECTS: [Subject; 9] = [
    Subject::new(BOUND, Own("crate-list"), "default").on_one_server(),
    Subject::new(LEASEHOLD, Own("redis/leasehold"), "default"),
    Subject::new(EACH, Own("redis/leasehold-each"), "default"),
    Subject::new("rslock", Own("rslock"), "default"),
    // The delays that make it fastest on one server and on five.
    Subject::new("rslock, 2 ms", Own("rslock"), "2").on_one_server(),
    Subject::new("rslock, 4 ms", Own("rslock"), "4"),
    NODE_REDLOCK,
    REDIS_PY,
    PYTHON_REDIS_LOCK,
];

/// A section lasts 1 ms. Its waiter pauses afterwards, half of the pause more or less, so that the lock goes to
/// another waiter.
pub(super) const SCENARIO: Scenario = Scenario {
    keys: Keys::One,
    waiters: 16,
    hold: Duration::from_millis(1),
    away: Duration::from_millis(5),
};

/// One subject in one round.
#[derive(Debug)]
pub(super) struct HandOver {
    /// Whether the others are compared with it: BLPOP, or Leasehold on several servers.
    pub(super) is_reference: bool,
    pub(super) figures: Figures,
    /// Of one core: all threads of the client, all servers, and other processes.
    pub(super) cpu: [f64; 3],
    pub(super) grants_per_second: f64,
    pub(super) gave_up: u64,
}

pub(super) const GRANTS: Column<HandOver> = ("grants per waiter", |row| {
    let least = row.seen().map(|seen| seen.figures.grants_least).min();
    let most = row.seen().map(|seen| seen.figures.grants_most).max();
    format!("{}–{}", least.unwrap_or(0), most.unwrap_or(0))
});

pub(super) const FAULTS: Column<HandOver> = ("gave up, overlaps", |row| {
    let gave_up = row.total(|seen| seen.gave_up);
    let overlaps = row.total(|seen| seen.figures.overlaps);
    format!("{gave_up}, {overlaps}")
});

const COLUMNS: [Column<HandOver>; 11] = [
    ("subject", |row| row.subject().into()),
    ("hand-over p50 µs", |row| {
        row.spread(|seen| seen.figures.p50)
    }),
    ("÷ reference", |row| {
        row.ratio(|run| run.seen.is_reference, |seen| seen.figures.p50)
    }),
    ("p99 µs", |row| row.spread(|seen| seen.figures.p99)),
    ("÷ reference", |row| {
        row.ratio(|run| run.seen.is_reference, |seen| seen.figures.p99)
    }),
    GRANTS,
    ("client CPU", |row| row.percent(|seen| seen.cpu[0])),
    ("servers' CPU", |row| row.percent(|seen| seen.cpu[1])),
    ("others' CPU", |row| row.percent(|seen| seen.cpu[2])),
    FAULTS,
    ("rounds", |row| row.rounds()),
];

pub(super) fn measure(options: &Options, page: &mut Page) -> Fallible {
    page.say(include_str!("../../pages/handover.md"));
    for nodes in [1, 5] {
        let servers = turns::servers(nodes);
        let reference = if nodes == 1 { BOUND } else { LEASEHOLD };
        let subjects = turns::present(&SUBJECTS, nodes, options, page);
        let measure = |subject: &Subject, servers: &_| {
            let worker = WorkerProcess::start_verified(subject, &SCENARIO, servers)?;
            HandOver::measure(worker, subject.name == reference, servers, options)
        };
        let (rounds, start) = (options.rounds(5), || RedisSet::start(nodes));
        let what = format!("hand-over, {servers}");
        let runs = turns::take_turns(&subjects, rounds, &what, page, start, measure);
        page.say(format!("### 16 waiters, {servers}"));
        page.say(format!("The reference is {reference}."));
        page.say(table(&COLUMNS, Row::by_subject(&runs)));
        summarize(&servers, &runs, page);
    }
    Ok(())
}

fn summarize(servers: &str, runs: &[Run<HandOver>], page: &mut Page) {
    let of = |name: &str| Row::of(runs, |run| run.subject == name)?.over(|seen| seen.figures.p50);
    let others = [
        ("Leasehold with a client each", of(EACH)),
        ("bare BLPOP", of(BOUND)),
        ("rslock", of("rslock")),
        ("node-redlock", of(NODE_REDLOCK.name)),
        ("redis-py", of(REDIS_PY.name)),
    ];
    let what = format!("hand-over among 16 waiters of one client, {servers}");
    let shown = |value| format!("{value:.0} µs");
    page.figure(&what, true, shown, of(LEASEHOLD), &others);
}

impl HandOver {
    /// Starts the waiters, and measures.
    pub(super) fn measure(
        mut worker: WorkerProcess,
        is_reference: bool,
        servers: &impl Servers,
        options: &Options,
    ) -> Fallible<Self> {
        worker.command("start", "started")?;
        // It sleeps as long as it measures what happens meanwhile.
        thread::sleep(Duration::from_millis(options.pick(300, 600)));
        let from = worker.ask_for("mark")?;
        let before = worker.usage(servers)?;
        let window = Duration::from_millis(options.pick(1000, 2000));
        thread::sleep(window);
        let used = worker.usage(servers)?.since(&before);
        let to = worker.ask_for("mark")?;
        let record: Record = worker.ask_for("finish")?;
        let figures = Figures::of(&record, SCENARIO.waiters, from, to);
        let figures = figures.ok_or_else(|| format!("no lock was handed over; {}", record.why))?;
        Ok(Self {
            is_reference,
            grants_per_second: number(figures.grants) / window.as_secs_f64(),
            figures,
            cpu: used.map(|used| used / window.as_secs_f64()),
            gave_up: record.gave_up,
        })
    }
}
