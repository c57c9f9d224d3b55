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
use leasehold_testkit::harness::{Harness, Optional, Suite};

use server::ExampleServer;
use store::ExampleStore;

// [suite]
const SUITES: &[Suite] = &[
    Suite::new("example", || Arc::new(Example(ExampleServer::start())))
        .in_other_processes(|address| Arc::new(ExampleStore(address.parse().expect("an address"))))
        .behind_proxies()
        .without(&[Optional::Admin, Optional::Records, Optional::Health]),
];

fn main() -> ExitCode {
    contract::main(SUITES)
}
// [suite]

// [harness]
/// A server.
#[derive(Debug)]
struct Example(ExampleServer);

impl Harness for Example {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(ExampleStore(self.0.address))
    }

    fn forget(&self, key: &Key) {
        self.0.forget(key.as_str());
    }

    fn servers(&self) -> Vec<u16> {
        vec![self.0.address.port()]
    }

    fn address_through(&self, ports: &[u16]) -> String {
        SocketAddr::from((Ipv4Addr::LOCALHOST, ports[0])).to_string()
    }
}
// [harness]
