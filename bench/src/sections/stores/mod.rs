//! The stores next to what their users use today: a free lock, a contended lock, and many held locks.

mod free;
mod handover;
mod held;

use crate::error::Fallible;
use crate::measure::machine;
use crate::measure::stores::Store;
use crate::measure::subject::Program::{self, Java, Own, Python};
use crate::measure::subject::{LEASEHOLD, Subject};
use crate::options::Options;
use crate::report::page::Page;
use crate::report::table::{Row, Run};

/// The same number of round trips with the client library alone.
const BARE: &str = "bare client";

/// Each lock is a process.
const ETCDCTL: &str = "etcdctl lock, a process per lock";

/// All waiters are clients of their own.
const EACH: &str = "leasehold, a client each";

/// Which of the three measurements a subject takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Free,
    HandOver,
    Held,
}

/// A subject on a store, and its program in each part; `None` if it does not take part.
#[derive(Clone, Copy, Debug)]
struct Party {
    name: &'static str,
    free: Option<Program>,
    hand_over: Option<Program>,
    held: Option<Program>,
}

pub(super) fn measure(options: &Options, page: &mut Page) -> Fallible {
    page.say(include_str!("../../../pages/stores.md"));
    let load = machine::load();
    let mut wanted = Store::ALL.to_vec();
    wanted.retain(|store| options.wants_store(store.name()));
    if wanted.is_empty() {
        let names = Store::ALL.map(Store::name).join(", ");
        return Err(format!("--store: no store has such a name; there are: {names}").into());
    }
    for store in wanted {
        let version = match store.try_start() {
            Ok(server) => server.version()?,
            Err(why) => {
                page.skip(store.name(), &why);
                continue;
            }
        };
        page.say(format!("### {}\n\nThe server is {version}.", store.name()));
        free::measure(store, options, page);
        // What waits for the disk or for members is the same in the other parts.
        if !matches!(store, Store::DurablePostgres | Store::EtcdMembers) {
            handover::measure(store, options, page);
            held::measure(store, options, page);
        }
    }
    let now = machine::load();
    page.say(format!(
        "The load of the machine was {load} at the start and {now} at the end."
    ));
    Ok(())
}

/// A value of a row, and how the page shows it.
struct Figure<T> {
    value: fn(&T) -> f64,
    shown: fn(f64) -> String,
}

impl<T> Figure<T> {
    fn micros(value: fn(&T) -> f64) -> Self {
        let shown = |value| format!("{value:.0} µs");
        Self { value, shown }
    }

    fn rate(value: fn(&T) -> f64) -> Self {
        let shown = |value| format!("{value:.0}/s");
        Self { value, shown }
    }
}

/// Adds a figure of Leasehold and of the others to those of the page.
fn summarize<T>(
    what: &str,
    subjects: &[Subject],
    runs: &[Run<T>],
    figure: Figure<T>,
    page: &mut Page,
) {
    let of = |name: &str| Row::of(runs, |run| run.subject == name)?.over(figure.value);
    let others = subjects.iter().filter(|subject| subject.name != LEASEHOLD);
    let others = others.map(|subject| (subject.name, of(subject.name)));
    let others: Vec<_> = others.collect();
    page.figure(what, false, figure.shown, of(LEASEHOLD), &others);
}

/// Returns the subjects of a part on a store.
fn subjects(store: Store, part: Part) -> Vec<Subject> {
    let program = |party: &Party| match part {
        Part::Free => party.free,
        Part::HandOver => party.hand_over,
        Part::Held => party.held,
    };
    let present = parties(store).iter();
    let present =
        present.filter_map(|party| Some(Subject::new(party.name, program(party)?, "default")));
    present.map(Subject::on_one_server).collect()
}

fn parties(store: Store) -> &'static [Party] {
    match store {
        Store::Postgres | Store::DurablePostgres => &POSTGRES,
        Store::Etcd | Store::EtcdMembers => &ETCD,
        Store::Zookeeper => &ZOOKEEPER,
    }
}

const POSTGRES: [Party; 5] = [
    Party::bare(Own("postgres/bare")),
    Party::of(LEASEHOLD, Own("postgres/leasehold")).held(Own("postgres/leasehold-held")),
    Party::each(Own("postgres/leasehold-each")),
    Party::of("pg_advisory_lock", Own("postgres/advisory")).held(Own("postgres/advisory-held")),
    Party::of("select for update", Own("postgres/rows")),
];

const ETCD: [Party; 6] = [
    Party::bare(Own("etcd/bare")),
    Party::of(LEASEHOLD, Own("etcd/leasehold")).held(Own("etcd/leasehold-held")),
    Party::each(Own("etcd/leasehold-each")),
    Party::of("Lock RPC, one lease per client", Own("etcd/rpc")).held(Own("etcd/rpc-held")),
    Party::of("Lock RPC, a lease per lock", Own("etcd/rpc-leases")),
    Party::of(ETCDCTL, Own("etcd/etcdctl")),
];

const ZOOKEEPER: [Party; 5] = [
    Party::bare(Own("zookeeper/bare")),
    Party::of(LEASEHOLD, Own("zookeeper/leasehold")).held(Own("zookeeper/leasehold-held")),
    Party::each(Own("zookeeper/leasehold-each")),
    Party::of("kazoo", Python("kazoo")).held(Python("kazoo")),
    Party::of("Curator", Java("curator")).held(Java("curator")),
];

impl Party {
    /// Takes part in the measurements of one lock.
    const fn of(name: &'static str, program: Program) -> Self {
        Self {
            name,
            free: Some(program),
            hand_over: Some(program),
            held: None,
        }
    }

    /// Takes part in the measurement of many held locks, too, by this program.
    const fn held(mut self, program: Program) -> Self {
        self.held = Some(program);
        self
    }

    const fn bare(program: Program) -> Self {
        Self {
            hand_over: None,
            ..Self::of(BARE, program)
        }
    }

    /// Leasehold with a client for each waiter.
    const fn each(program: Program) -> Self {
        Self {
            free: None,
            ..Self::of(EACH, program)
        }
    }
}
