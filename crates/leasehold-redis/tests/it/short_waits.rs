//! Waits that are shorter than the round trip to the server.

use std::time::Duration;

use leasehold::blocking;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::RedisServer;

use crate::support::store_at;

#[test]
fn short_waits_do_not_delay_other_locks() {
    const TTL: Duration = Duration::from_secs(4);
    let server = RedisServer::start();
    let far = Proxy::to(server.port());
    let locks = blocking::Client::new(store_at(&format!("redis://127.0.0.1:{}", far.port())));
    let held = locks.lock("held").ttl(TTL).acquire().unwrap();
    far.set(NetworkFault::SlowAnswers(Duration::from_millis(130)));
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
