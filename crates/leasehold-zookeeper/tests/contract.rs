//! The contract of stores, kept by one server and by an ensemble of three.

use std::future::ready;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_testkit::contract;
use leasehold_testkit::faults::NetworkFault;
use leasehold_testkit::harness::{Harness, Login, LoginServer, Optional, ServerFault, Suite};
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection};
use leasehold_zookeeper::{Password, ZooKeeperStore};

const SUITES: &[Suite] = &[
    Suite::new("zookeeper", || Servers::start(1))
        .in_other_processes(open)
        .behind_proxies()
        .behind_a_login(Guarded::start)
        .without(&[Optional::Health]),
    Suite::new("zookeeper_ensemble", || Servers::start(3))
        .in_other_processes(open)
        .behind_proxies()
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
    /// The leader when the last fault began.
    leader: Mutex<usize>,
}

impl Servers {
    fn start(count: usize) -> Arc<dyn Harness> {
        Arc::new(Self {
            servers: Mutex::new(start(count)),
            leader: Mutex::default(),
        })
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
        open(&self.address())
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

    fn inject(&self, fault: &str) {
        let mut servers = locked(&self.servers);
        let count = servers.ports().len();
        let leader = if count == 1 { 0 } else { servers.leader() };
        *locked(&self.leader) = leader;
        match fault {
            "leader frozen" => servers.freeze(leader),
            "follower frozen" => servers.freeze((leader + 1) % count),
            "leader restarted" => servers.kill(leader),
            "all restarted" => (0..count).for_each(|member| servers.kill(member)),
            "links lost" => {
                let links = servers.links().iter();
                links.for_each(|link| link.set(NetworkFault::HalfOpen));
            }
            _ => panic!("no fault is called {fault}"),
        }
    }

    fn heal(&self, fault: &str) {
        let mut servers = locked(&self.servers);
        let (leader, count) = (*locked(&self.leader), servers.ports().len());
        match fault {
            "leader frozen" => servers.thaw(leader),
            "follower frozen" => servers.thaw((leader + 1) % count),
            "leader restarted" => servers.restart(leader),
            "all restarted" => servers.restart_all(),
            _ => {
                for link in servers.links() {
                    link.set(NetworkFault::None);
                    link.cut();
                }
            }
        }
    }
}

/// A server whose locks belong to the first user.
#[derive(Debug)]
struct Guarded(Zookeeper);

impl Guarded {
    fn start(_: &str) -> Box<dyn LoginServer> {
        Box::new(Self(Zookeeper::start()))
    }
}

impl LoginServer for Guarded {
    fn open(&self, login: &Login) -> Arc<dyn Store> {
        let url = self.0.url() + "/own";
        match login {
            Login::Function(password) => {
                let password = Arc::clone(password);
                let store = ZooKeeperStore::new(&url).expect("a URL");
                let password = Password::from_fn(move || ready(Ok(password())));
                store.login(Login::USER, password).into()
            }
            _ => open(&login.in_url(&url)),
        }
    }

    /// The password is a part of the identity that the nodes belong to.
    fn change_password(&self, _: &str) -> bool {
        false
    }
}
