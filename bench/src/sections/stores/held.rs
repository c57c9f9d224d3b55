use std::thread;
use std::time::Duration;

use super::{Part, subjects};
use crate::error::Fallible;
use crate::measure::record::{Renewals, Taken};
use crate::measure::stores::{Store, StoreServer};
use crate::measure::subject::Subject;
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::statistics::number;
use crate::report::table::{Column, Row, table};
use crate::sections::turns;

const LOCKS: usize = 1_000;

/// The TTL of the locks, or of the session or lease that keeps them.
const TTL: Duration = Duration::from_secs(30);

/// What it costs a client to hold many locks while nothing else happens.
#[derive(Debug)]
struct Held {
    /// Of one core.
    client_cpu: f64,
    server_cpu: f64,
    requests_per_second: f64,
    lost: usize,
}

const COLUMNS: [Column<Held>; 6] = [
    ("1,000 locks held", |row| row.subject().into()),
    ("client CPU", |row| row.percent(|seen| seen.client_cpu)),
    ("server's CPU", |row| row.percent(|seen| seen.server_cpu)),
    ("requests/s", |row| {
        row.part(|seen| seen.requests_per_second)
    }),
    ("lost", |row| row.total(|seen| seen.lost)),
    ("rounds", |row| row.rounds()),
];

pub(super) fn measure(store: Store, options: &Options, page: &mut Page) {
    let subjects = turns::present(&subjects(store, Part::Held), 1, options, page);
    let what = format!("held, {}", store.name());
    let measure = |subject: &Subject, server: &_| Held::measure(subject, server, options);
    let (rounds, start) = (options.rounds(1), || store.start());
    let runs = turns::take_turns(&subjects, rounds, &what, page, start, measure);
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
}

impl Held {
    fn measure(subject: &Subject, server: &StoreServer, options: &Options) -> Fallible<Self> {
        let scenario = Scenario {
            hold: TTL,
            ..Scenario::without_pauses(Keys::Each, LOCKS)
        };
        let mut worker = WorkerProcess::start(subject, &scenario, server)?;
        let _: Taken = worker.ask_for("hold")?;
        // PostgreSQL counts what a client did last only after ten seconds without work.
        thread::sleep(Duration::from_secs(12));
        let before = server.requests()?;
        let usage = worker.usage(server)?;
        let seconds: usize = options.pick(10, 30);
        thread::sleep(Duration::from_secs(seconds.try_into()?));
        let [client, server_used, _] = worker.usage(server)?.since(&usage);
        let requests = server.requests()? - before;
        let renewals: Renewals = worker.ask_for("report")?;
        Ok(Self {
            client_cpu: client / number(seconds),
            server_cpu: server_used / number(seconds),
            requests_per_second: requests / number(seconds),
            lost: renewals.lost,
        })
    }
}
