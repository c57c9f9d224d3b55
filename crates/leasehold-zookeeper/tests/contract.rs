//! The contract of stores, kept by one server and by an ensemble of three.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_testkit::contract;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::harness::{Harness, Optional, ServerFault, Suite};
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

/// What the servers suffer. The links are those of the last member to the others.
const FAULTS: &[ServerFault] = &[
    ServerFault::new("leader frozen"),
    ServerFault::new("follower frozen"),
    ServerFault::new("leader restarted"),
    ServerFault::new("all restarted"),
    ServerFault::new("links lost"),
];

/// What one server suffers.
const FAULTS_OF_ONE: &[ServerFault] = &[
    ServerFault::new("leader frozen"),
    ServerFault::new("all restarted"),
];

/// The login of the clients, and the path of the locks.
const PASSWORD: &str = "contract-secret";

fn main() -> ExitCode {
    contract::main(SUITES)
}

#[derive(Debug)]
struct Servers {
    servers: Mutex<Zookeeper>,
    /// The member that a fault has struck.
    struck: Mutex<Option<usize>>,
    proxies: Vec<Proxy>,
}

impl Servers {
    fn start(count: usize) -> Arc<dyn Harness> {
        Arc::new(Self::of(count))
    }

    fn of(count: usize) -> Self {
        Self {
            servers: Mutex::new(start(count)),
            struck: Mutex::default(),
            proxies: Vec::new(),
        }
    }

    fn behind_proxies(count: usize) -> Arc<dyn Harness> {
        let servers = Self::of(count);
        let proxies = servers.servers().into_iter().map(Proxy::to).collect();
        Arc::new(Self { proxies, ..servers })
    }

    fn url(&self, ports: impl IntoIterator<Item = u16>) -> String {
        let url = locked(&self.servers).url_at(ports);
        let hosts = url.trim_start_matches("zk://");
        format!("zk://contract:{PASSWORD}@{hosts}/contract/locks?timeout=4s")
    }
}

fn start(count: usize) -> Zookeeper {
    let servers = Zookeeper::builder().members(count);
    match count {
        1 => servers.start(),
        _ => servers.with_links().start(),
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
        self.url(self.servers())
    }

    fn forget(&self, key: &Key) {
        let login = format!("contract:{PASSWORD}");
        let mut server = ZookeeperConnection::open(self.servers()[0], Some(&login));
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

    fn servers(&self) -> Vec<u16> {
        locked(&self.servers).ports()
    }

    fn address_through(&self, ports: &[u16]) -> String {
        self.url(ports.iter().copied())
    }

    fn server_faults(&self) -> &[ServerFault] {
        match self.servers().len() {
            1 => FAULTS_OF_ONE,
            _ => FAULTS,
        }
    }

    fn strike(&self, fault: &str, begins: bool) {
        let mut servers = locked(&self.servers);
        let mut struck = locked(&self.struck);
        if begins {
            let count = servers.ports().len();
            *struck = Some(if count == 1 { 0 } else { servers.leader() });
        }
        let leader = struck.expect("a member");
        match (fault, begins) {
            ("leader frozen", true) => servers.freeze(leader),
            ("leader frozen", false) => servers.thaw(leader),
            ("follower frozen", true) => servers.freeze((leader + 1) % 3),
            ("follower frozen", false) => servers.thaw((leader + 1) % 3),
            ("leader restarted", true) => servers.kill(leader),
            ("leader restarted", false) => servers.restart(leader),
            ("all restarted", true) => (0..servers.ports().len()).for_each(|it| servers.kill(it)),
            ("all restarted", false) => servers.restart_all(),
            (_, true) => (servers.links().iter()).for_each(|link| link.set(NetworkFault::HalfOpen)),
            (_, false) => {
                for link in servers.links() {
                    link.set(NetworkFault::None);
                    link.cut();
                }
            }
        }
    }
}
