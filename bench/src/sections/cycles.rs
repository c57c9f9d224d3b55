//! A free lock, acquired and released: what that costs, one at a time and many at once.

use std::time::Duration;

use leasehold_testkit::servers::RedisSet;

use crate::error::Fallible;
use crate::measure::record::Cycled;
use crate::measure::servers::Servers;
use crate::measure::subject::Program::Own;
use crate::measure::subject::{LEASEHOLD, NODE_REDLOCK, PYTHON_REDIS_LOCK, REDIS_PY, Subject};
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::statistics::number;
use crate::report::table::{Column, Row, Run, table};
use crate::sections::turns;

/// The reference for the others: the same client library, and nothing else.
const REFERENCE: &str = "redis crate";

const SUBJECTS: [Subject; 9] = [
    Subject::new(REFERENCE, Own("crate"), "multi"),
    Subject::new("redis crate, one thread", Own("crate"), "default"),
    Subject::new(LEASEHOLD, Own("redis/leasehold"), "multi"),
    Subject::new("leasehold, one thread", Own("redis/leasehold"), "default"),
    Subject::new("rslock", Own("rslock"), "multi"),
    Subject::new("rslock, one thread", Own("rslock"), "default"),
    NODE_REDLOCK,
    REDIS_PY,
    PYTHON_REDIS_LOCK,
];

/// One subject in one round.
#[derive(Debug)]
pub(super) struct Cycles {
    pub(super) cycled: Cycled,
    pub(super) cycles_per_second: f64,
    /// Processor time, per cycle: all threads of the client, all servers.
    pub(super) client_micros: f64,
    pub(super) server_micros: f64,
    /// What other processes on this machine used, of one core.
    pub(super) other_cpu: f64,
}

/// The attempts that ended without the lock.
pub(super) const FAILED: Column<Cycles> = ("failed", |row| row.total(|seen| seen.cycled.failed));

const COLUMNS: [Column<Cycles>; 10] = [
    ("subject", |row| row.subject().into()),
    ("cycles/s", |row| row.spread(|seen| seen.cycles_per_second)),
    ("÷ redis crate", |row| {
        let is_reference = |run: &Run<Cycles>| run.subject == REFERENCE;
        row.ratio(is_reference, |seen| seen.cycles_per_second)
    }),
    ("cycle p50 µs", |row| {
        row.integer(|seen| seen.cycled.cycle_p50)
    }),
    ("p99 µs", |row| row.integer(|seen| seen.cycled.cycle_p99)),
    ("client CPU µs per cycle", |row| {
        row.part(|seen| seen.client_micros)
    }),
    ("servers' CPU µs per cycle", |row| {
        row.part(|seen| seen.server_micros)
    }),
    ("others' CPU", |row| row.percent(|seen| seen.other_cpu)),
    FAILED,
    ("rounds", |row| row.rounds()),
];

/// How long a subject cycles before it is measured. The proof makes a lock busy, and Leasehold leaves the
/// plain commands alone for a second after that.
const WARM_UP: Duration = Duration::from_millis(1_250);

pub(super) fn measure(options: &Options, page: &mut Page) -> Fallible {
    page.say(include_str!("../../pages/cycles.md"));
    for nodes in [1, 5] {
        let servers = turns::servers(nodes);
        let subjects = turns::present(&SUBJECTS, nodes, options, page);
        for in_flight in [1, 64, 512] {
            let what = format!("{in_flight} in flight, {servers}");
            let measure = |subject: &Subject, servers: &_| {
                let scenario = Scenario::without_pauses(Keys::Each, in_flight);
                let worker = WorkerProcess::start_verified(subject, &scenario, servers)?;
                Cycles::measure(worker, servers, WARM_UP, options)
            };
            let (rounds, start) = (options.rounds(5), || RedisSet::start(nodes));
            let runs = turns::take_turns(&subjects, rounds, &what, page, start, measure);
            page.say(format!("### {what}"));
            page.say(table(&COLUMNS, Row::by_subject(&runs)));
            summarize(nodes, in_flight, &runs, page);
        }
    }
    Ok(())
}

fn summarize(nodes: usize, in_flight: usize, runs: &[Run<Cycles>], page: &mut Page) {
    let (what, shown): (_, fn(f64) -> String) = match in_flight {
        1 => ("acquire and release a free lock", |value| {
            format!("{value:.0} µs")
        }),
        64 => ("free locks per second, 64 at a time", |value| {
            format!("{value:.0}/s")
        }),
        _ => return,
    };
    let value = |seen: &Cycles| match in_flight {
        1 => seen.cycled.cycle_p50,
        _ => seen.cycles_per_second,
    };
    let of = |name: &str| Row::of(runs, |run| run.subject == name)?.over(value);
    let others = [
        ("bare `redis` crate", of(REFERENCE)),
        ("rslock", of("rslock")),
        ("node-redlock", of(NODE_REDLOCK.name)),
        ("redis-py", of(REDIS_PY.name)),
    ];
    let what = format!("{what}, {}", turns::servers(nodes));
    page.figure(&what, true, shown, of(LEASEHOLD), &others);
}

impl Cycles {
    /// Warms up, and measures.
    pub(super) fn measure(
        mut worker: WorkerProcess,
        servers: &impl Servers,
        warm_up: Duration,
        options: &Options,
    ) -> Fallible<Self> {
        let _: Cycled = worker.ask_for(&format!("cycle-for {}", warm_up.as_millis()))?;
        let before = worker.usage(servers)?;
        let span = options.pick(300, 1000);
        let cycled: Cycled = worker.ask_for(&format!("cycle-for {span}"))?;
        let [client, server, others] = worker.usage(servers)?.since(&before);
        if cycled.cycles == 0 {
            return Err(format!("no cycle came to its end; {}", cycled.why).into());
        }
        let cycles = number(cycled.cycles);
        Ok(Self {
            cycles_per_second: cycles / cycled.seconds,
            client_micros: client * 1e6 / cycles,
            server_micros: server * 1e6 / cycles,
            other_cpu: others / cycled.seconds,
            cycled,
        })
    }
}
