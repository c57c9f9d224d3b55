//! The contract of stores, kept by etcd.

use std::future::ready;
use std::io::Write as _;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_etcd::{EtcdStore, Password};
use leasehold_testkit::contract;
use leasehold_testkit::faults::NetworkFault;
use leasehold_testkit::harness::{Harness, Login, LoginServer, Optional, ServerFault, Suite};
use leasehold_testkit::servers::{EtcdServer, EtcdSet};

const SUITES: &[Suite] = &[
    Suite::new("etcd", || Arc::new(Etcd::start(1)))
        .in_other_processes(open)
        .behind_proxies()
        .behind_a_login(Guarded::start)
        .without(&[Optional::Health]),
    Suite::new("etcd_ensemble", || Arc::new(Etcd::start(3)))
        .in_other_processes(open)
        .without(&[Optional::Health])
        .only_programs(),
];

/// What a server suffers.
const FAULTS: &[ServerFault] = &[
    ServerFault::new("leader restarted"),
    ServerFault::new("leader frozen").that_ends_leases(),
    ServerFault::new("leases revoked").that_ends_leases(),
];

/// What an ensemble suffers.
const ENSEMBLE_FAULTS: &[ServerFault] = &[
    ServerFault::new("leader restarted"),
    ServerFault::new("leader frozen").that_ends_leases(),
    ServerFault::new("leases revoked").that_ends_leases(),
    ServerFault::new("paths to the leader lost").that_ends_leases(),
    ServerFault::new("majority restarted"),
];

const USER: &str = "locks";
const PASSWORD: &str = "contract-secret";

fn main() -> ExitCode {
    contract::main(SUITES)
}

/// A server that wants a login, and the path to it.
#[derive(Debug)]
struct Etcd {
    servers: Mutex<EtcdSet>,
    /// The leader when the last fault began.
    leader: Mutex<usize>,
}

impl Etcd {
    fn start(count: usize) -> Self {
        let servers = EtcdSet::start_with(count, EtcdServer::builder().fast_elections());
        servers[0].demand_login(USER, PASSWORD, "contract/");
        Self {
            servers: Mutex::new(servers),
            leader: Mutex::default(),
        }
    }

    fn etcdctl(&self, words: &[&str]) -> String {
        let login = format!("--user={USER}:{PASSWORD}");
        let output = locked(&self.servers)[0].etcdctl(&[&[login.as_str()], words].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Revokes the leases of all holders and waiters, but not those that keep records and fences.
    fn revoke(&self) {
        for lease in self.etcdctl(&["lease", "list"]).lines().skip(1) {
            let login = format!("--user={USER}:{PASSWORD}");
            let servers = locked(&self.servers);
            let shown = servers[0].etcdctl(&[&login, "lease", "timetolive", "--keys", lease]);
            if !String::from_utf8_lossy(&shown.stdout).contains("leasehold:") {
                // It may have ended meanwhile.
                servers[0].etcdctl(&[&login, "lease", "revoke", lease]);
            }
        }
    }
}

fn url(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    format!(
        "etcd://{USER}:{PASSWORD}@{}?prefix=contract/",
        hosts.join(",")
    )
}

fn open(url: &str) -> Arc<dyn Store> {
    let store = EtcdStore::new(url);
    store.unwrap_or_else(|error| panic!("{error}")).into()
}

impl Harness for Etcd {
    fn open(&self) -> Arc<dyn Store> {
        open(&self.address())
    }

    fn forget(&self, key: &Key) {
        self.etcdctl(&["del", &format!("contract/{key}/"), "--prefix"]);
        for kind in ["fence", "broken", "record", "version"] {
            self.etcdctl(&["del", &format!("contract/leasehold:{kind}/{key}")]);
        }
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.into()]
    }

    fn servers(&self) -> Vec<u16> {
        locked(&self.servers).iter().map(EtcdServer::port).collect()
    }

    fn address_through(&self, ports: &[u16]) -> String {
        url(ports)
    }

    fn server_faults(&self) -> &[ServerFault] {
        match self.servers().len() {
            1 => FAULTS,
            _ => ENSEMBLE_FAULTS,
        }
    }

    fn inject(&self, fault: &str) {
        if fault == "leases revoked" {
            return self.revoke();
        }
        let mut servers = locked(&self.servers);
        let leader = servers.leader();
        *locked(&self.leader) = leader;
        match fault {
            "leader restarted" => servers[leader].kill(),
            "leader frozen" => servers[leader].freeze(),
            "majority restarted" => (0..2).for_each(|member| servers[member].kill()),
            "paths to the leader lost" => servers.peers()[leader].set(NetworkFault::HalfOpen),
            _ => panic!("no fault is called {fault}"),
        }
    }

    fn heal(&self, fault: &str) {
        let mut servers = locked(&self.servers);
        let leader = *locked(&self.leader);
        match fault {
            "leader restarted" => servers[leader].restart(),
            "leader frozen" => servers[leader].thaw(),
            "majority restarted" => restart(&mut servers[..2]),
            "paths to the leader lost" => {
                servers.peers()[leader].set(NetworkFault::None);
                servers.peers()[leader].cut();
            }
            _ => {}
        }
    }

    fn leftovers(&self, prefix: &str) -> Vec<String> {
        let keys = self.etcdctl(&[
            "get",
            "--prefix",
            "--keys-only",
            &format!("contract/{prefix}"),
        ]);
        keys.lines()
            .filter(|key| !key.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// None of them is ready before the other one runs.
fn restart(members: &mut [EtcdServer]) {
    std::thread::scope(|scope| {
        for member in members {
            scope.spawn(|| member.restart());
        }
    });
}

/// A server that asks for a password.
#[derive(Debug)]
struct Guarded(EtcdServer);

impl Guarded {
    fn start(password: &str) -> Box<dyn LoginServer> {
        let server = EtcdServer::start();
        server.demand_login(Login::USER, password, "contract/");
        Box::new(Self(server))
    }
}

impl LoginServer for Guarded {
    fn open(&self, login: &Login) -> Arc<dyn Store> {
        let url = format!("etcd://127.0.0.1:{}?prefix=contract/", self.0.port());
        match login {
            Login::Function(password) => {
                let password = Arc::clone(password);
                let store = EtcdStore::new(&url).expect("a URL");
                let password = Password::from_fn(move || ready(Ok(password())));
                store.login(Login::USER, password).into()
            }
            _ => open(&login.in_url(&url)),
        }
    }

    /// It ends all tokens of the user, too.
    fn change_password(&self, password: &str) -> bool {
        let words = [
            "--user=root:root",
            "user",
            "passwd",
            Login::USER,
            "--interactive=false",
        ];
        let mut command = self.0.etcdctl_command(&words);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut changing = command.spawn().expect("etcdctl");
        let mut stdin = changing.stdin.take().expect("a pipe");
        writeln!(stdin, "{password}").expect("etcdctl reads");
        drop(stdin);
        assert!(changing.wait().expect("an end").success());
        true
    }
}
