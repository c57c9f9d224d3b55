//! What concerns etcd alone: access to its servers, other clients of its locks, and work that it guards.
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod access;
mod batches;
mod breaking;
mod crowd;
mod foreign;
mod full;
mod guarded;
mod leases;
mod neighbours;
mod permits;
mod pooled;
mod runtimes;
mod servers;
mod successors;
mod watches;

use std::time::Duration;

use leasehold::{Client, Lock};
use leasehold_etcd::EtcdStore;

/// Long enough for a slow machine.
const LONG: Duration = Duration::from_secs(60);

fn client(url: &str) -> Client {
    Client::new(EtcdStore::new(url).unwrap())
}

fn url(server: &leasehold_testkit::servers::EtcdServer) -> String {
    format!("etcd://127.0.0.1:{}", server.port())
}

fn lock(client: &Client, name: &str) -> Lock {
    client.lock(leasehold::Key::new(name).unwrap()).ttl(LONG)
}
