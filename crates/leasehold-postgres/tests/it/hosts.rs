//! Several servers, of which one accepts writes.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use leasehold::Client;
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::PostgresServer;

use crate::support::{LONG, server};

fn at(server: &PostgresServer, ports: &[u16]) -> Client {
    let hosts: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let host = format!("127.0.0.1:{}", server.port());
    let url = server.url().replace(&host, &hosts.join(","));
    Client::new(PostgresStore::new(url).expect("a URL"))
}

/// Takes and releases a lock. A wait has time enough on a slow machine.
async fn use_a_lock(client: &Client) {
    let lock = client.lock("job").ttl(LONG).wait(LONG);
    let guard = lock.acquire().await.expect("the lock");
    guard.release().await.expect("a release");
}

/// A port whose server accepts connections and says nothing, as one that is stopped.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

#[tokio::test]
async fn silent_host_is_passed_over() {
    let server = server().await;
    let (_one, first) = silent();
    let (_two, second) = silent();
    let client = at(&server, &[first, second, server.port()]);
    use_a_lock(&client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_survives_the_silence_of_its_host() {
    let server = server().await;
    let (one, two) = (Proxy::to(server.port()), Proxy::to(server.port()));
    let client = at(&server, &[one.port(), two.port()]);
    let guard = client
        .lock("job")
        .ttl(Duration::from_secs(15))
        .acquire()
        .await
        .expect("the lock");
    one.set(NetworkFault::HalfOpen);
    let end = "select until from leasehold.lock where name = 'job';";
    let first = server.sql(end);
    tokio::task::block_in_place(|| {
        leasehold_testkit::servers::until("the lease is renewed", || {
            assert!(guard.is_valid(), "lost");
            server.sql(end) != first
        });
    });
    guard.release().await.expect("a release");
}

#[tokio::test]
async fn standby_loses_to_the_primary() {
    let server = server().await;
    let standby = PostgresServer::builder()
        .standby_of(server.port(), "second")
        .start();
    let client = at(&server, &[standby.port(), server.port()]);
    use_a_lock(&client).await;
    let client = at(&server, &[standby.port(), silent().1]);
    let error = client
        .lock("job")
        .try_acquire()
        .await
        .expect_err("an error");
    assert!(error.is_not_ready(), "{error:?}");
    assert!(error.to_string().contains("standby"), "{error}");
}
