//! Waits that are shorter than the round trip to the server, and clients that wait for no server.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, blocking};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{RedisServer, RedisSet};

use crate::support::{quorum, store_at};

#[test]
fn short_waits_do_not_delay_other_locks() {
    const TTL: Duration = Duration::from_secs(4);
    let server = RedisServer::start();
    let far = Proxy::to(server.port());
    let locks = blocking::Client::new(store_at(&format!("redis://127.0.0.1:{}", far.port())));
    let held = locks.lock("held").ttl(TTL).acquire().unwrap();
    far.set(NetworkFault::SlowAnswers(Duration::from_millis(230)));
    let began = SystemClock.now();
    let mut answered = 0;
    while SystemClock.now().since(began) < 3 * TTL {
        let other = locks.lock("other").wait(Duration::from_millis(20));
        answered += usize::from(other.acquire().is_ok());
        assert!(held.is_valid(), "lost: {:?}", held.state());
    }
    assert_eq!(answered, 0, "the answer takes longer than the wait");
    held.release().unwrap();
    far.set(NetworkFault::None);
    // A lock that was granted after its caller had gone is freed.
    locks.lock("other").acquire().unwrap().release().unwrap();
}

/// A client that waited 100 ms for the frozen server with each lock would take ten.
#[tokio::test]
async fn new_client_waits_once_for_frozen_servers() {
    let servers = RedisSet::start(5);
    quorum(&servers).init().await.unwrap();
    servers[1].freeze();
    servers[3].freeze();
    let locks = Client::new(quorum(&servers));
    let (began, mut taken) = (SystemClock.now(), 0);
    while SystemClock.now().since(began) < Duration::from_secs(1) {
        let guard = locks.lock("x").acquire().await.unwrap();
        guard.release().await.unwrap();
        taken += 1;
    }
    assert!(taken > 30, "{taken} locks");
    servers[1].thaw();
    servers[3].thaw();
}
