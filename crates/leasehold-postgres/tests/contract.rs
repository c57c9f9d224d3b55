//! The contract of stores, kept by a PostgreSQL server.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, ServerFault, Suite};
use leasehold_testkit::servers::PostgresServer;

const SUITES: &[Suite] = &[Suite::new("postgres", Server::start)
    .in_other_processes(open)
    .behind_proxies()
    .without(&[Optional::Health])];

const FAULTS: &[ServerFault] = &[
    ServerFault::new("frozen"),
    ServerFault::new("restarted"),
    ServerFault::new("connections killed"),
];

fn main() -> ExitCode {
    contract::main(SUITES)
}

fn open(url: &str) -> Arc<dyn Store> {
    let store = PostgresStore::new(url);
    store.unwrap_or_else(|error| panic!("{error}")).into()
}

#[derive(Debug)]
struct Server {
    server: Mutex<PostgresServer>,
}

impl Server {
    fn start() -> Arc<dyn Harness> {
        let server = PostgresServer::start();
        let store = PostgresStore::new(server.url()).expect("a URL");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let done = runtime.block_on(store.init());
        done.unwrap_or_else(|error| panic!("{error}"));
        server.sql(include_str!("hostile.sql"));
        let server = Mutex::new(server);
        Arc::new(Self { server })
    }
}

impl Harness for Server {
    fn open(&self) -> Arc<dyn Store> {
        open(&self.address())
    }

    fn forget(&self, key: &Key) {
        for table in ["lock", "sharer", "waiter", "ended", "break", "record"] {
            let sql = format!("delete from leasehold.{table} where name = $key${key}$key$;");
            locked(&self.server).sql(&sql);
        }
    }

    fn secrets(&self) -> Vec<String> {
        vec![PostgresServer::PASSWORD.into()]
    }

    fn servers(&self) -> Vec<u16> {
        vec![locked(&self.server).port()]
    }

    fn address_through(&self, ports: &[u16]) -> String {
        PostgresServer::url_at(ports[0])
    }

    fn server_faults(&self) -> &[ServerFault] {
        FAULTS
    }

    fn inject(&self, fault: &str) {
        let mut server = locked(&self.server);
        match fault {
            "frozen" => server.freeze(),
            "restarted" => server.kill(),
            "connections killed" => drop(server.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where pid <> pg_backend_pid() and backend_type = 'client backend';",
            )),
            _ => panic!("no fault is called {fault}"),
        }
    }

    fn heal(&self, fault: &str) {
        let mut server = locked(&self.server);
        match fault {
            "frozen" => server.thaw(),
            "restarted" => server.restart(),
            _ => {}
        }
    }

    fn leftovers(&self, prefix: &str) -> Vec<String> {
        let rows = |table: &str, also: &str| {
            let like = format!("name like '{prefix}%' and until > clock_timestamp(){also}");
            locked(&self.server).sql(&format!(
                "select '{table}: ' || name from leasehold.{table} where {like};"
            ))
        };
        [
            rows("lock", " and owner is not null"),
            rows("sharer", ""),
            rows("waiter", ""),
        ]
        .concat()
    }
}
