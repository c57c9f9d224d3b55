//! Five servers, one of them frozen: what that costs the clients.

use leasehold_testkit::servers::RedisSet;

use crate::error::Fallible;
use crate::measure::record::Cycled;
use crate::measure::subject::Program::Own;
use crate::measure::subject::{LEASEHOLD, Subject};
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::statistics::number;
use crate::report::table::{Column, Row, Run, table};
use crate::sections::turns;

const SUBJECTS: [Subject; 3] = [
    Subject::new(LEASEHOLD, Own("redis/leasehold"), "multi"),
    Subject::new("raw redis", Own("crate-impatient"), "multi"),
    Subject::new("rslock", Own("rslock-impatient"), "multi"),
];

/// A subject in one round.
#[derive(Debug)]
struct Frozen {
    /// The last server stopped for good; its kernel still accepts connections and data.
    is_frozen: bool,
    cycled: Cycled,
}

const COLUMNS: [Column<Frozen>; 7] = [
    ("servers", |row| condition(row.first().is_frozen).into()),
    ("subject", |row| {
        match row.seen().map(|seen| seen.cycled.failed).sum() {
            0_usize => row.subject().into(),
            failed => format!("{} ({failed} cycles failed)", row.subject()),
        }
    }),
    ("cycles/s", |row| row.spread(Frozen::rate)),
    ("÷ its own with all healthy", |row| {
        let subject = row.subject();
        row.ratio(
            |run| run.subject == subject && !run.seen.is_frozen,
            Frozen::rate,
        )
    }),
    ("cycle p50 µs", |row| {
        row.integer(|seen| seen.cycled.cycle_p50)
    }),
    ("p99 µs", |row| row.integer(|seen| seen.cycled.cycle_p99)),
    ("longest ms", |row| {
        row.integer(|seen| seen.cycled.longest / 1000.0)
    }),
];

pub(super) fn measure(options: &Options, page: &mut Page) -> Fallible {
    page.say(include_str!("../../pages/frozen.md"));
    let subjects = turns::present(&SUBJECTS, 5, options, page);
    for in_flight in [1, 64] {
        let mut runs = Vec::new();
        for round in 0..options.rounds(3) {
            for is_frozen in [false, true] {
                let what = format!(
                    "{in_flight} in flight, five servers, {}",
                    condition(is_frozen)
                );
                let measure = |subject: &_, servers: &_| {
                    Frozen::measure(subject, servers, is_frozen, in_flight, options)
                };
                let start = || RedisSet::start(5);
                runs.extend(turns::take_turn(
                    &subjects, round, &what, page, start, measure,
                ));
            }
        }
        let row = |subject: &str, is_frozen: bool| {
            let is_own =
                |run: &Run<Frozen>| (run.subject, run.seen.is_frozen) == (subject, is_frozen);
            Row::of(&runs, is_own)
        };
        let rows = subjects
            .iter()
            .flat_map(|subject| [false, true].map(|is_frozen| row(subject.name, is_frozen)));
        page.say(format!("### {in_flight} in flight"));
        page.say(table(&COLUMNS, rows.flatten()));
        if in_flight == 64 {
            let of = |name| row(name, true)?.over(Frozen::rate);
            page.figure(
                "free locks per second, 64 at a time, one of five servers frozen",
                true,
                |value| format!("{value:.0}/s"),
                of(LEASEHOLD),
                &[("rslock", of("rslock"))],
            );
        }
    }
    Ok(())
}

impl Frozen {
    fn measure(
        subject: &Subject,
        servers: &RedisSet,
        is_frozen: bool,
        in_flight: usize,
        options: &Options,
    ) -> Fallible<Self> {
        let scenario = Scenario::without_pauses(Keys::Each, in_flight);
        let mut worker = WorkerProcess::start(subject, &scenario, servers)?;
        let (warm_up, window) = options.pick((200, 1500), (400, 3000));
        let _: Cycled = worker.ask_for(&format!("cycle-for {warm_up}"))?;
        if is_frozen {
            servers[4].freeze();
        }
        let cycled = worker.ask_for(&format!("cycle-for {window}"))?;
        Ok(Self { is_frozen, cycled })
    }

    fn rate(&self) -> f64 {
        number(self.cycled.cycles) / self.cycled.seconds
    }
}

fn condition(is_frozen: bool) -> &'static str {
    if is_frozen {
        "one frozen"
    } else {
        "all healthy"
    }
}
