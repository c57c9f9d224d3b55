use std::time::Duration;

use super::{Part, subjects};
use crate::measure::stores::{Store, StoreServer};
use crate::measure::subject::Subject;
use crate::options::Options;
use crate::report::page::Page;
use crate::report::table::{Column, Row, table};
use crate::sections::held::{Held, scenario};
use crate::sections::turns;

const LOCKS: usize = 1_000;

/// The TTL of the locks, or of the session or lease that keeps them.
const TTL: Duration = Duration::from_secs(30);

const COLUMNS: [Column<Held>; 6] = [
    ("1,000 locks held", |row| row.subject().into()),
    ("client CPU", |row| row.percent(|seen| seen.client_cpu)),
    ("server's CPU", |row| row.percent(|seen| seen.server_cpu)),
    ("requests/s", |row| row.part(|seen| seen.requests_mean)),
    ("lost", |row| row.total(|seen| seen.lost)),
    ("rounds", |row| row.rounds()),
];

pub(super) fn measure(store: Store, options: &Options, page: &mut Page) {
    let subjects = turns::present(&subjects(store, Part::Held), 1, options, page);
    let what = format!("held, {}", store.name());
    // PostgreSQL counts what a client did last only after ten seconds without work.
    let (pause, window) = (Duration::from_secs(12), options.pick(10, 30));
    let windows = [Duration::from_secs(window)];
    let scenario = scenario(LOCKS, TTL);
    let measure = |subject: &Subject, server: &StoreServer| {
        let requests = StoreServer::requests;
        Held::measure(subject, &scenario, server, pause, &windows, requests)
    };
    let (rounds, start) = (options.rounds(1), || store.start());
    let runs = turns::take_turns(&subjects, rounds, &what, page, start, measure);
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
}
