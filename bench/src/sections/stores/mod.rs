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

/// The same number of round trips with the client library alone.
const BARE: &str = "bare client";

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
    for store in Store::ALL {
        let version = match store.try_start() {
            Ok(server) => server.version()?,
            Err(why) => {
                page.skip(store.name(), &why);
                continue;
            }
        };
        page.say(format!("### {}\n\nThe server is {version}.", store.name()));
        free::measure(store, options, page);
        // What waits for the disk is the same in the other parts.
        if store != Store::DurablePostgres {
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
        Store::Etcd => &ETCD,
        Store::Zookeeper => &ZOOKEEPER,
    }
}

const POSTGRES: [Party; 5] = [
    Party::bare(Own("postgres/bare")),
    Party {
        name: LEASEHOLD,
        free: Some(Own("postgres/leasehold")),
        hand_over: Some(Own("postgres/leasehold")),
        held: Some(Own("postgres/leasehold-held")),
    },
    Party::each(Own("postgres/leasehold-each")),
    Party {
        name: "pg_advisory_lock",
        free: Some(Own("postgres/advisory")),
        hand_over: Some(Own("postgres/advisory")),
        held: Some(Own("postgres/advisory-held")),
    },
    Party {
        name: "select for update",
        free: Some(Own("postgres/rows")),
        hand_over: Some(Own("postgres/rows")),
        held: None,
    },
];

const ETCD: [Party; 6] = [
    Party::bare(Own("etcd/bare")),
    Party {
        name: LEASEHOLD,
        free: Some(Own("etcd/leasehold")),
        hand_over: Some(Own("etcd/leasehold")),
        held: Some(Own("etcd/leasehold-held")),
    },
    Party::each(Own("etcd/leasehold-each")),
    Party {
        name: "Lock RPC, one lease per client",
        free: Some(Own("etcd/rpc")),
        hand_over: Some(Own("etcd/rpc")),
        held: Some(Own("etcd/rpc-held")),
    },
    Party {
        name: "Lock RPC, a lease per lock",
        free: Some(Own("etcd/rpc-leases")),
        hand_over: Some(Own("etcd/rpc-leases")),
        held: None,
    },
    Party {
        name: "etcdctl lock, a process per lock",
        free: Some(Own("etcd/etcdctl")),
        hand_over: Some(Own("etcd/etcdctl")),
        held: None,
    },
];

const ZOOKEEPER: [Party; 5] = [
    Party::bare(Own("zookeeper/bare")),
    Party {
        name: LEASEHOLD,
        free: Some(Own("zookeeper/leasehold")),
        hand_over: Some(Own("zookeeper/leasehold")),
        held: Some(Own("zookeeper/leasehold-held")),
    },
    Party::each(Own("zookeeper/leasehold-each")),
    Party::everywhere("kazoo", Python("kazoo")),
    Party::everywhere("Curator", Java("curator")),
];

impl Party {
    const fn bare(program: Program) -> Self {
        Self {
            name: BARE,
            free: Some(program),
            hand_over: None,
            held: None,
        }
    }

    /// Leasehold with a client for each waiter.
    const fn each(program: Program) -> Self {
        Self {
            name: EACH,
            free: None,
            hand_over: Some(program),
            held: None,
        }
    }

    const fn everywhere(name: &'static str, program: Program) -> Self {
        Self {
            name,
            free: Some(program),
            hand_over: Some(program),
            held: Some(program),
        }
    }
}
