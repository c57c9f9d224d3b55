//! A whole store on a network keeps the contract, also while the network fails. It is a template for new stores.

mod inspection;
mod link;
mod server;
mod store;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::Store;
use leasehold_testkit::contract;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::harness::{Harness, Optional, Suite};

use server::ExampleServer;
use store::ExampleStore;

// [suite]
const SUITES: &[Suite] = &[Suite::new("example", || Arc::new(Example::start()))
    .in_other_processes(|address| Arc::new(ExampleStore(address.parse().expect("an address"))))
    .behind_proxies(|| Arc::new(Example::behind_proxy()))
    .without(&[Optional::Admin, Optional::Records, Optional::Health])];

fn main() -> ExitCode {
    contract::main(SUITES)
}
// [suite]

// [harness]
/// A server, and the path to it.
#[derive(Debug)]
struct Example {
    server: ExampleServer,
    proxies: Vec<Proxy>,
}

impl Harness for Example {
    fn open(&self) -> Arc<dyn Store> {
        let port = self.proxies.first().map(Proxy::port);
        let port = port.unwrap_or(self.server.address.port());
        Arc::new(ExampleStore(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    }

    fn forget(&self, key: &Key) {
        self.server.forget(key.as_str());
    }

    fn address(&self) -> String {
        self.server.address.to_string()
    }

    fn network(&self) -> &[Proxy] {
        &self.proxies
    }

    fn servers(&self) -> Vec<u16> {
        vec![self.server.address.port()]
    }

    fn address_through(&self, ports: &[u16]) -> String {
        SocketAddr::from((Ipv4Addr::LOCALHOST, ports[0])).to_string()
    }
}
// [harness]

impl Example {
    fn start() -> Self {
        Self {
            server: ExampleServer::start(),
            proxies: Vec::new(),
        }
    }

    fn behind_proxy() -> Self {
        let server = ExampleServer::start();
        let proxies = vec![Proxy::to(server.address.port())];
        Self { server, proxies }
    }
}
