use std::time::Duration;

use super::{BARE, Part, subjects, summarize};
use crate::measure::stores::Store;
use crate::measure::subject::Subject;
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::table::{Column, Row, table};
use crate::sections::cycles::{Cycles, FAILED};
use crate::sections::turns;

const COLUMNS: [Column<Cycles>; 9] = [
    ("free lock", |row| row.subject().into()),
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

/// Acquires and releases a lock that nothing else uses, one at a time.
pub(super) fn measure(store: Store, options: &Options, page: &mut Page) {
    let present = turns::present(&subjects(store, Part::Free), 1, options, page);
    let what = format!("free lock, {}", store.name());
    let [short, long] = WARM_UP;
    let warm_up = match store {
        Store::Zookeeper => options.pick(short, long),
        _ => short,
    };
    let measure = |subject: &Subject, server: &_| {
        let scenario = Scenario::without_pauses(Keys::Each, 1);
        let worker = WorkerProcess::start_proven(subject, &scenario, server)?;
        Cycles::measure(worker, server, warm_up, options)
    };
    let (rounds, start) = (options.rounds(5), || store.start());
    let runs = turns::take_turns(&present, rounds, &what, page, start, measure);
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
    let what = format!("acquire and release a free lock, {}", store.name());
    let subjects = subjects(store, Part::Free);
    summarize(&what, &subjects, &runs, |seen| seen.cycled.cycle_p50, page);
}
