//! The contract of stores, kept by one server and by an ensemble of three.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::Store;
use leasehold_testkit::contract;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::harness::{Harness, Optional, Suite};
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection};
use leasehold_zookeeper::ZooKeeperStore;

const SUITES: &[Suite] = &[
    Suite::new("zookeeper", || Servers::start(1))
        .in_other_processes(open)
        .behind_proxies(|| Servers::behind_proxies(1))
        .without(&[Optional::Health]),
    Suite::new("zookeeper_ensemble", || Servers::start(3))
        .in_other_processes(open)
        .behind_proxies(|| Servers::behind_proxies(3))
        .without(&[Optional::Health]),
];

/// The login of the clients, and the path of the locks.
const PASSWORD: &str = "contract-secret";

fn main() -> ExitCode {
    contract::main(SUITES)
}

#[derive(Debug)]
struct Servers {
    servers: Zookeeper,
    proxies: Vec<Proxy>,
}

impl Servers {
    fn start(count: usize) -> Arc<dyn Harness> {
        let servers = Zookeeper::builder().members(count).start();
        let proxies = Vec::new();
        Arc::new(Self { servers, proxies })
    }

    fn behind_proxies(count: usize) -> Arc<dyn Harness> {
        let servers = Zookeeper::builder().members(count).start();
        let proxies = servers.ports().into_iter().map(Proxy::to).collect();
        Arc::new(Self { servers, proxies })
    }

    fn url(&self, ports: impl IntoIterator<Item = u16>) -> String {
        let url = self.servers.url_at(ports);
        let hosts = url.trim_start_matches("zk://");
        format!("zk://contract:{PASSWORD}@{hosts}/contract/locks")
    }
}

fn open(address: &str) -> Arc<dyn Store> {
    let store = ZooKeeperStore::new(address).unwrap_or_else(|error| panic!("{error}"));
    store.into()
}

impl Harness for Servers {
    fn open(&self) -> Arc<dyn Store> {
        match self.proxies.as_slice() {
            [] => open(&self.address()),
            proxies => open(&self.url(proxies.iter().map(Proxy::port))),
        }
    }

    fn address(&self) -> String {
        self.url(self.servers.ports())
    }

    fn forget(&self, key: &Key) {
        let login = format!("contract:{PASSWORD}");
        let mut server = ZookeeperConnection::open(self.servers.ports()[0], Some(&login));
        let name = key.as_str().replace('%', "%25").replace('/', "%2F");
        server.delete_all(&format!("/contract/locks/{name}"));
        server.delete_all(&format!("/contract/locks/leasehold:broken/{name}"));
        // Which counter the key has is not known here.
        server.delete_all("/contract/locks/leasehold:fences");
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.into()]
    }

    fn network(&self) -> &[Proxy] {
        &self.proxies
    }
}
