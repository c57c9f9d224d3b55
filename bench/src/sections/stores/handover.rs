use super::{Figure, Part, subjects, summarize};
use crate::measure::stores::Store;
use crate::measure::subject::{LEASEHOLD, Subject};
use crate::measure::worker_process::WorkerProcess;
use crate::options::Options;
use crate::report::page::Page;
use crate::report::table::{Column, Row, table};
use crate::sections::handover::{FAULTS, GRANTS, HandOver, SCENARIO};
use crate::sections::turns;

const COLUMNS: [Column<HandOver>; 10] = [
    ("16 waiters", |row| row.subject().into()),
    ("hand-over p50 µs", |row| {
        row.spread(|seen| seen.figures.p50)
    }),
    ("÷ leasehold", |row| {
        row.ratio(|run| run.seen.is_reference, |seen| seen.figures.p50)
    }),
    ("p99 µs", |row| row.spread(|seen| seen.figures.p99)),
    ("grants/s", |row| row.integer(|seen| seen.grants_per_second)),
    GRANTS,
    ("client CPU", |row| row.percent(|seen| seen.cpu[0])),
    ("server's CPU", |row| row.percent(|seen| seen.cpu[1])),
    FAULTS,
    ("rounds", |row| row.rounds()),
];

/// Passes a lock among 16 waiters, as the section about Redis does.
pub(super) fn measure(store: Store, options: &Options, page: &mut Page) {
    let present = turns::present(&subjects(store, Part::HandOver), 1, options, page);
    let what = format!("hand-over, {}", store.name());
    let measure = |subject: &Subject, server: &_| {
        let worker = WorkerProcess::start_proven(subject, &SCENARIO, server)?;
        HandOver::measure(worker, subject.name == LEASEHOLD, server, options)
    };
    let (rounds, start) = (options.rounds(5), || store.start());
    let runs = turns::take_turns(&present, rounds, &what, page, start, measure);
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
    let what = format!("hand-over among 16 waiters of one client, {}", store.name());
    let subjects = subjects(store, Part::HandOver);
    let p50 = Figure::micros(|seen: &HandOver| seen.figures.p50);
    summarize(&what, &subjects, &runs, p50, page);
}
