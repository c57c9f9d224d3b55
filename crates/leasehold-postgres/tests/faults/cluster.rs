use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::{Findings, Hold, ProtectedResource, Proxy};
use leasehold_testkit::servers::{PostgresServer, until};

use crate::worker;
use leasehold_testkit::SecondProcess;

/// How many processes share the lock.
const WORKERS: usize = 4;

/// A server, perhaps with a standby, the processes that share a lock on it, and the record that the lock
/// protects.
#[derive(Debug)]
pub(crate) struct Cluster {
    // Workers come first, because they must end before what they work on.
    pub(crate) workers: Vec<SecondProcess>,
    pub(crate) server: PostgresServer,
    pub(crate) standby: Option<PostgresServer>,
    /// The path of the standby to the server.
    pub(crate) replication: Proxy,
    pub(crate) resource: ProtectedResource,
}

impl Cluster {
    /// Starts the server and workers, and a standby that is synchronous or not if there shall be one.
    pub(crate) fn start(standby: Option<bool>) -> Self {
        let server = PostgresServer::start();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let store = PostgresStore::new(server.url()).expect("a URL");
        let done = runtime.expect("a runtime").block_on(store.init());
        done.unwrap_or_else(|error| panic!("{error}"));
        server.sql(worker::TABLES);
        let replication = Proxy::to(server.port());
        let second = standby.map(|_| {
            PostgresServer::builder()
                .standby_of(replication.port(), "second")
                .start()
        });
        if standby == Some(true) {
            server.sql("alter system set synchronous_standby_names = 'second';");
            server.sql("select pg_reload_conf();");
            let state = "select sync_state from pg_stat_replication;";
            until("the standby is synchronous", || {
                server.sql(state) == ["sync"]
            });
        }
        let resource = ProtectedResource::open();
        let url = match &second {
            Some(second) => both(server.port(), second.port()),
            None => server.url(),
        };
        let workers =
            (0..WORKERS).map(|number| worker::start(number, &resource.path(), &url, &url));
        let workers = workers.collect();
        let cluster = Self {
            workers,
            server,
            standby: second,
            replication,
            resource,
        };
        cluster.await_grants(WORKERS);
        cluster
    }

    /// Waits for that many further grants. Returns how long the first one took.
    pub(crate) fn await_grants(&self, count: usize) -> Duration {
        let (begun, before) = (SystemClock.now(), self.resource.grants());
        let mut first = None;
        until("further grants", || {
            let grants = self.resource.grants() - before;
            if grants > 0 {
                first.get_or_insert(SystemClock.now());
            }
            grants >= count
        });
        first.map_or(Duration::ZERO, |first: BootInstant| first.since(begun))
    }

    /// Asks the next holder to stay, and waits until one does.
    pub(crate) fn holder_that_stays(&self, span: Duration) -> Hold {
        self.resource.ask_to_stay(span);
        let mut staying = None;
        until("a holder stays", || {
            staying = self.resource.staying();
            staying.is_some()
        });
        staying.expect("a holder")
    }

    /// Ends the workers. Returns what the judges found, and what is wrong with the record in the database.
    pub(crate) fn finish(mut self) -> (Findings, Option<String>) {
        for worker in self.workers.drain(..) {
            worker.finish();
        }
        let found = Findings::of(&self.resource.history());
        let server = self.standby.as_ref().unwrap_or(&self.server);
        // In the order in which they were written: each value once, and no smaller fence after a greater one.
        let disorder = server.sql(
            "select count(*) from (select value - lag(value, 1, 0::bigint) over o as step, \
             fence - lag(fence, 1, 0::bigint) over o as later from written window o as (order by number)) w \
             where step <> 1 or later < 0;",
        );
        let written =
            server.sql("select value > 0 and value = (select count(*) from written) from counter;");
        let is_whole = disorder == ["0"] && written == ["t"];
        let text = || format!("the record in the database: {disorder:?} out of order, {written:?}");
        (found, (!is_whole).then(text))
    }
}

/// Returns the address of two servers. One of them accepts writes.
fn both(one: u16, other: u16) -> String {
    PostgresServer::url_at(one).replace(&format!(":{one}/"), &format!(":{one},127.0.0.1:{other}/"))
        + "?target_session_attrs=read-write"
}
