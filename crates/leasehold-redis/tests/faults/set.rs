use std::time::Duration;

use leasehold::blocking;
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisSet, until};
use tokio::runtime::Builder;

/// The TTL of every lock.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// The longest TTL that the quorum allows. A member that forgot leases is left out for a second longer.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(3);

/// By how much the members' clocks may differ.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_millis(150);

/// Returns the store whose members are at `urls`, with the configuration of all clients.
pub(crate) fn store(urls: &[String], max_ttl: Duration) -> RedisStore {
    let store = RedisStore::new(urls).unwrap_or_else(|error| panic!("{error}"));
    store.clock_tolerance(CLOCK_TOLERANCE).max_ttl(max_ttl)
}

/// Returns a client of that store.
pub(crate) fn client(urls: &[String], max_ttl: Duration) -> blocking::Client {
    blocking::Client::new(store(urls, max_ttl))
}

/// Initializes a quorum of those `servers` that are at `urls`. They have just started, and have a vote at once.
pub(crate) fn form(servers: &RedisSet, urls: &[String], max_ttl: Duration) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    until("the set is formed", || {
        let formed = runtime.block_on(async { store(urls, max_ttl).init().await });
        if formed.is_err() {
            // If the machine stalls, its servers seem silent. A quorum that is initialized only in part
            // would obstruct the next try.
            for server in servers.iter() {
                server.command(&["DEL", "leasehold:member_record"]);
            }
        }
        formed.is_ok()
    });
}
