use std::time::Duration;

use super::{BARE, ETCDCTL, Figure, Part, subjects, summarize};
use crate::measure::stores::Store;
use crate::measure::subject::Subject;
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::table::{Column, Row, table};
use crate::sections::cycles::{Cycles, FAILED};
use crate::sections::turns;

const COLUMNS: [Column<Cycles>; 10] = [
    ("free lock", |row| row.subject().into()),
    ("cycles/s", |row| row.spread(|seen| seen.cycles_per_second)),
    ("cycle p50 µs", |row| {
        row.spread(|seen| seen.cycled.cycle_p50)
    }),
    ("÷ bare", |row| {
        row.ratio(|run| run.subject == BARE, |seen| seen.cycled.cycle_p50)
    }),
    ("p99 µs", |row| row.integer(|seen| seen.cycled.cycle_p99)),
    ("client CPU µs per cycle", |row| {
        row.part(|seen| seen.client_micros)
    }),
    ("server's CPU µs per cycle", |row| {
        row.part(|seen| seen.server_micros)
    }),
    ("others' CPU", |row| row.percent(|seen| seen.other_cpu)),
    FAILED,
    ("rounds", |row| row.rounds()),
];

/// How long a subject cycles before it is measured: until the server and the client in Java are compiled, and until
/// Leasehold no longer treats the lock of the proof as contended.
const WARM_UP: [Duration; 2] = [Duration::from_millis(1_250), Duration::from_millis(4_000)];

/// Acquires and releases locks that nothing else uses, one at a time and 64 at once.
pub(super) fn measure(store: Store, options: &Options, page: &mut Page) {
    for in_flight in [1, 64] {
        measure_at(in_flight, store, options, page);
    }
}

fn measure_at(in_flight: usize, store: Store, options: &Options, page: &mut Page) {
    let mut subjects = subjects(store, Part::Free);
    // 64 processes at once would measure the machine.
    subjects.retain(|subject| in_flight == 1 || subject.name != ETCDCTL);
    let present = turns::present(&subjects, 1, options, page);
    let what = format!("free lock, {}, {in_flight} in flight", store.name());
    let [short, long] = WARM_UP;
    let warm_up = match store {
        Store::Zookeeper => options.pick(short, long),
        _ => short,
    };
    let measure = |subject: &Subject, server: &_| {
        let scenario = Scenario::without_pauses(Keys::Each, in_flight);
        let worker = WorkerProcess::start_proven(subject, &scenario, server)?;
        Cycles::measure(worker, server, warm_up, options)
    };
    let (rounds, start) = (options.rounds(5), || store.start());
    let runs = turns::take_turns(&present, rounds, &what, page, start, measure);
    page.say(format!("{in_flight} in flight:"));
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
    let (what, figure) = match in_flight {
        1 => (
            "acquire and release a free lock",
            Figure::micros(|seen: &Cycles| seen.cycled.cycle_p50),
        ),
        _ => (
            "free locks per second, 64 at a time",
            Figure::rate(|seen: &Cycles| seen.cycles_per_second),
        ),
    };
    let what = format!("{what}, {}", store.name());
    summarize(&what, &subjects, &runs, figure, page);
}
