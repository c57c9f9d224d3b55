//! Releases that arrive after the wait that sent them got the lock.

use std::time::Duration;

use leasehold::Client;
use leasehold::store::background;
use leasehold_redis::RedisStore;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::{RedisServer, RedisSet};

use crate::support::{documented_rights, eventually, hold, is_busy, queued, set_user};

const TTL: Duration = Duration::from_secs(30);

/// A client of these ports. Its user has the documented rights, so it cannot end its previous connection.
fn client_at(ports: impl Iterator<Item = u16>) -> RedisStore {
    let urls = ports.enumerate();
    let urls =
        urls.map(|(member, port)| format!("redis://locks:secret@127.0.0.1:{port}?id=m{member}"));
    RedisStore::new(urls).unwrap()
}

/// A waiter's connections hold back what it sends. It connects again and gets the lock, and then all that
/// was held back arrives.
async fn late_bytes_end_no_lease(servers: &RedisSet) {
    for server in servers.iter() {
        set_user(server, "locks", &documented_rights("locks"));
    }
    let direct = || client_at(servers.iter().map(RedisServer::port));
    if servers.len() > 1 {
        direct().init().await.unwrap();
    }
    let paths: Vec<Proxy> = servers.iter().map(|it| Proxy::to(it.port())).collect();
    let waiter = Client::new(client_at(paths.iter().map(Proxy::port)));
    let (first, other) = (Client::new(direct()), Client::new(direct()));
    let held = hold(&first, "deploy").await;
    let waits = background::spawn(waiter.lock("deploy").ttl(TTL).acquire());
    for server in servers.iter() {
        queued(server, "deploy", 1).await;
    }
    paths.iter().for_each(Proxy::hold_requests);
    eventually("the waiter connects again", async || {
        paths.iter().all(|path| path.opened() > 1).then_some(())
    })
    .await;
    held.release().await.unwrap();
    let got = waits.await.unwrap().unwrap();
    paths.iter().for_each(Proxy::deliver_requests);
    eventually("the server ran what was held back", async || {
        (!paths.iter().any(Proxy::holds_requests)).then_some(())
    })
    .await;
    assert!(is_busy(&other, "deploy").await, "two holders: {got:?}");
    assert!(got.is_valid());
    got.release().await.unwrap();
}

#[tokio::test]
async fn late_release_ends_no_lease() {
    late_bytes_end_no_lease(&RedisSet::start(1)).await;
}

#[tokio::test]
async fn late_releases_end_no_lease_on_quorum() {
    late_bytes_end_no_lease(&RedisSet::start(3)).await;
}
