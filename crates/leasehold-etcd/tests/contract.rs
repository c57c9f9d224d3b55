//! The contract of stores, kept by etcd.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::Store;
use leasehold_etcd::EtcdStore;
use leasehold_testkit::contract;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::harness::{Harness, Optional, Suite};
use leasehold_testkit::servers::EtcdServer;

const SUITES: &[Suite] = &[Suite::new("etcd", || Arc::new(Etcd::start()))
    .in_other_processes(open)
    .behind_proxies(|| Arc::new(Etcd::behind_proxy()))
    .without(&[Optional::Health])];

const USER: &str = "locks";
const PASSWORD: &str = "contract-secret";

fn main() -> ExitCode {
    contract::main(SUITES)
}

/// A server that wants a login, and the path to it.
#[derive(Debug)]
struct Etcd {
    server: EtcdServer,
    proxies: Vec<Proxy>,
}

impl Etcd {
    fn start() -> Self {
        let server = EtcdServer::start();
        let proxies = Vec::new();
        server.demand_login(USER, PASSWORD, "contract/");
        Self { server, proxies }
    }

    fn behind_proxy() -> Self {
        let started = Self::start();
        let proxies = vec![Proxy::to(started.server.port())];
        Self { proxies, ..started }
    }
}

fn url(port: u16) -> String {
    format!("etcd://{USER}:{PASSWORD}@127.0.0.1:{port}?prefix=contract/")
}

fn open(url: &str) -> Arc<dyn Store> {
    let store = EtcdStore::new(url);
    store.unwrap_or_else(|error| panic!("{error}")).into()
}

impl Harness for Etcd {
    fn open(&self) -> Arc<dyn Store> {
        let port = self.proxies.first().map(Proxy::port);
        open(&url(port.unwrap_or(self.server.port())))
    }

    fn address(&self) -> String {
        url(self.server.port())
    }

    fn forget(&self, key: &Key) {
        let delete = |words: &[&str]| {
            let login = format!("--user={USER}:{PASSWORD}");
            let output = self
                .server
                .etcdctl(&[&[login.as_str(), "del"], words].concat());
            assert!(output.status.success(), "{output:?}");
        };
        delete(&[&format!("contract/{key}/"), "--prefix"]);
        for kind in ["fence", "broken", "record", "version"] {
            delete(&[&format!("contract/leasehold:{kind}/{key}")]);
        }
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.into()]
    }

    fn network(&self) -> &[Proxy] {
        &self.proxies
    }
}
