use std::time::Duration;

use leasehold::blocking::Client;
use leasehold_etcd::EtcdStore;
use leasehold_testkit::faults::{History, ProtectedResource, Proxy, Workers};
use leasehold_testkit::servers::{EtcdServer, EtcdSet, until};

/// How many workers share the lock, each with a client of its own.
const WORKERS: usize = 4;

/// The TTL of their leases.
pub(crate) const TTL: Duration = Duration::from_secs(3);

/// How long a worker waits for the lock before it reports that it did not get it.
const WAIT: Duration = Duration::from_secs(5);

/// Three servers, the paths to them, the workers that share a lock over them, and the record that the lock protects.
pub(crate) struct Ensemble {
    workers: Workers,
    /// By member.
    pub(crate) paths: Vec<Proxy>,
    pub(crate) servers: EtcdSet,
    resource: ProtectedResource,
}

impl Ensemble {
    pub(crate) fn start() -> Self {
        let servers = EtcdSet::start_with(3, EtcdServer::builder().fast_elections());
        let paths: Vec<Proxy> = servers
            .iter()
            .map(|server| Proxy::to(server.port()))
            .collect();
        let resource = ProtectedResource::open();
        let workers = Workers::start(WORKERS, &resource.path(), |number| {
            // Each worker begins with another member.
            let ports = (0..paths.len()).map(|place| paths[(place + number) % paths.len()].port());
            let servers: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
            let url = format!("etcd://{}", servers.join(","));
            let client = Client::new(EtcdStore::new(&url).unwrap());
            client.lock("the-record").ttl(TTL).wait(WAIT)
        });
        let ensemble = Self {
            workers,
            paths,
            servers,
            resource,
        };
        ensemble.await_grants(1);
        ensemble
    }

    /// Returns how often the lock has been granted so far.
    pub(crate) fn grants(&self) -> usize {
        self.resource.grants()
    }

    /// Waits until the lock has been granted `more` times.
    pub(crate) fn await_grants(&self, more: usize) {
        let enough = self.grants() + more;
        until("the lock is granted again", || self.grants() >= enough);
    }

    /// Waits for a holder that stays inside for a while. Returns while it is inside.
    pub(crate) fn await_holder(&self) {
        self.resource.ask_to_stay(TTL / 2);
        until("a worker holds the lock and stays", || {
            self.resource.staying().is_some()
        });
    }

    /// Ends the workers, and returns everything that happened.
    pub(crate) fn finish(self) -> History {
        self.workers.stop();
        self.resource.history()
    }
}

/// Waits for `span`.
pub(crate) fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a fault lasts is part of it"
    )]
    std::thread::sleep(span);
}
