//! The contract of stores and members, kept by one server, by one server as a quorum of one, and by
//! five servers.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold::{Key, Member, Quorum, Store};
use leasehold_redis::RedisMember;
use leasehold_redis::store::RedisStore;
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, OpenAt, Optional, Suite};
use leasehold_testkit::servers::{RedisServer, RedisSet};

const SUITES: &[Suite] = &[
    Suite {
        name: "redis_member",
        start: || Servers::start(1, open_member),
        open_at: Some(open_member),
        is_member: true,
        without: &[Optional::Health],
    },
    Suite {
        name: "redis",
        start: || Servers::start(1, open_store),
        open_at: Some(open_store),
        is_member: true,
        without: &[],
    },
    Suite {
        name: "redis_quorum",
        start: || Servers::start(5, open_quorum),
        open_at: Some(open_quorum),
        is_member: false,
        without: &[],
    },
    Suite {
        name: "engine",
        start: || Servers::start(1, open_engine),
        open_at: Some(open_engine),
        is_member: false,
        without: &[],
    },
    Suite {
        name: "engine_quorum",
        start: || Servers::start(5, open_engine),
        open_at: Some(open_engine),
        is_member: false,
        without: &[],
    },
];

const PASSWORD: &str = "contract-secret";

fn main() -> ExitCode {
    contract::main(SUITES)
}

#[derive(Debug)]
struct Servers {
    set: Mutex<RedisSet>,
    open_at: OpenAt,
}

impl Servers {
    fn start(count: usize, open_at: OpenAt) -> Arc<dyn Harness> {
        let settings = RedisServer::builder().password(PASSWORD);
        let set = RedisSet::start_each(count, &settings);
        if count >= 3 {
            form(&set);
        }
        Arc::new(Self {
            set: Mutex::new(set),
            open_at,
        })
    }

    fn set(&self) -> MutexGuard<'_, RedisSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn member(url: &str) -> RedisMember {
    RedisMember::new(url).unwrap_or_else(|error| panic!("{error}"))
}

fn open_member(address: &str) -> Arc<dyn Store> {
    Arc::new(member(address))
}

fn open_store(address: &str) -> Arc<dyn Store> {
    member(address).into()
}

fn quorum(address: &str) -> Quorum {
    let quorum = RedisMember::all(address.split(',')).and_then(Quorum::new);
    quorum.unwrap_or_else(|error| panic!("{error}"))
}

fn open_quorum(address: &str) -> Arc<dyn Store> {
    quorum(address).into()
}

fn open_engine(address: &str) -> Arc<dyn Store> {
    let store = RedisStore::new(address.split(','));
    Arc::new(store.unwrap_or_else(|error| panic!("{error}")))
}

/// Writes the members' cards: as servers that were just started they would not count yet.
fn form(set: &RedisSet) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let quorum = quorum(&set.urls().join(","));
    let formed = runtime.block_on(quorum.init());
    formed.unwrap_or_else(|error| panic!("{error}"));
}

impl Harness for Servers {
    fn open(&self) -> Arc<dyn Store> {
        (self.open_at)(&self.address())
    }

    fn address(&self) -> String {
        self.set().urls().join(",")
    }

    fn member(&self) -> Arc<dyn Member> {
        member(&self.set()[0].url()).into()
    }

    fn places(&self) -> Vec<Arc<dyn Store>> {
        self.set()
            .urls()
            .iter()
            .map(|url| open_member(url))
            .collect()
    }

    fn forget(&self, key: &Key) {
        for server in self.set().iter() {
            let records = [
                "fence:0", "readers", "slots", "queue", "offered", "broken", "owners",
            ];
            let records = records.map(|record| format!("leasehold:{record}:{{{key}}}:{key}"));
            let mut command = vec!["DEL", key.as_str()];
            command.extend(records.iter().map(String::as_str));
            server.command(&command);
        }
    }

    fn restart(&self) {
        self.set()[0].restart();
    }

    fn forget_everything(&self) {
        self.set()[0].command(&["FLUSHALL"]);
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.into()]
    }
}
