//! The contract of stores, kept by a PostgreSQL server.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::contract;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::harness::{Harness, Optional, ServerFault, Suite};
use leasehold_testkit::servers::PostgresServer;

const SUITES: &[Suite] = &[Suite::new("postgres", || Server::start(false))
    .in_other_processes(open)
    .behind_proxies(|| Server::start(true))
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
    proxies: Vec<Proxy>,
}

impl Server {
    fn start(behind_proxy: bool) -> Arc<dyn Harness> {
        let server = PostgresServer::start();
        let store = PostgresStore::new(server.url()).expect("a URL");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let done = runtime.block_on(store.init());
        done.unwrap_or_else(|error| panic!("{error}"));
        server.sql(include_str!("hostile.sql"));
        let proxies = behind_proxy.then(|| Proxy::to(server.port()));
        let proxies = proxies.into_iter().collect();
        Arc::new(Self {
            server: Mutex::new(server),
            proxies,
        })
    }
}

impl Harness for Server {
    fn open(&self) -> Arc<dyn Store> {
        match self.proxies.first() {
            None => open(&self.address()),
            Some(proxy) => open(&PostgresServer::url_at(proxy.port())),
        }
    }

    fn forget(&self, key: &Key) {
        for table in ["lock", "sharer", "waiter", "ended", "break", "record"] {
            let sql = format!("delete from leasehold.{table} where name = $key${key}$key$;");
            locked(&self.server).sql(&sql);
        }
    }

    fn address(&self) -> String {
        locked(&self.server).url()
    }

    fn secrets(&self) -> Vec<String> {
        vec![PostgresServer::PASSWORD.into()]
    }

    fn network(&self) -> &[Proxy] {
        &self.proxies
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

    fn strike(&self, fault: &str, begins: bool) {
        let mut server = locked(&self.server);
        match (fault, begins) {
            ("frozen", true) => server.freeze(),
            ("frozen", false) => server.thaw(),
            ("restarted", true) => server.kill(),
            ("restarted", false) => server.restart(),
            (_, true) => {
                let others = "where pid <> pg_backend_pid() and backend_type = 'client backend'";
                server.sql(&format!(
                    "select pg_terminate_backend(pid) from pg_stat_activity {others};"
                ));
            }
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
