//! The contract of stores, kept by a PostgreSQL server.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::Store;
use leasehold_postgres::PostgresStore;
use leasehold_testkit::contract;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::harness::{Harness, Optional, Suite};
use leasehold_testkit::servers::PostgresServer;

const SUITES: &[Suite] = &[Suite::new("postgres", || Server::start(false))
    .in_other_processes(open)
    .behind_proxies(|| Server::start(true))
    .without(&[Optional::Health])];

fn main() -> ExitCode {
    contract::main(SUITES)
}

fn open(url: &str) -> Arc<dyn Store> {
    let store = PostgresStore::new(url);
    store.unwrap_or_else(|error| panic!("{error}")).into()
}

#[derive(Debug)]
struct Server {
    server: PostgresServer,
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
        Arc::new(Self { server, proxies })
    }
}

impl Harness for Server {
    fn open(&self) -> Arc<dyn Store> {
        let port = self.proxies.first().map_or(self.server.port(), Proxy::port);
        open(&PostgresServer::url_at(port))
    }

    fn forget(&self, key: &Key) {
        for table in ["lock", "sharer", "waiter", "ended", "break", "record"] {
            let sql = format!("delete from leasehold.{table} where name = $key${key}$key$;");
            self.server.sql(&sql);
        }
    }

    fn address(&self) -> String {
        self.server.url()
    }

    fn secrets(&self) -> Vec<String> {
        vec![PostgresServer::PASSWORD.into()]
    }

    fn network(&self) -> &[Proxy] {
        &self.proxies
    }
}
