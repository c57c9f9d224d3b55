use std::time::Duration;

use leasehold::{Quorum, blocking};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisSet, until};
use tokio::runtime::Builder;

/// The TTL of every lock.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// The longest TTL that the set allows: a member that forgot is left out a second longer.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(3);

/// By how much the members' clocks may differ.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_millis(150);

/// The set whose members are at `urls`, as all clients know it.
pub(crate) fn quorum(urls: &[String], max_ttl: Duration) -> Quorum {
    let members = RedisMember::all(urls).unwrap_or_else(|error| panic!("{error}"));
    let quorum = Quorum::new(members).unwrap_or_else(|error| panic!("{error}"));
    quorum.clock_tolerance(CLOCK_TOLERANCE).max_ttl(max_ttl)
}

/// A client of that set.
pub(crate) fn client(urls: &[String], max_ttl: Duration) -> blocking::Client {
    blocking::Client::new(quorum(urls, max_ttl))
}

/// Makes a set of those of `servers` that are at `urls`: just started, and they count at once.
pub(crate) fn form(servers: &RedisSet, urls: &[String], max_ttl: Duration) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    until("the set is formed", || {
        let formed = runtime.block_on(async { quorum(urls, max_ttl).init().await });
        if formed.is_err() {
            // A machine that stands still makes its servers seem silent; what was written half-way
            // would be in the way of the next try.
            for server in servers.iter() {
                server.command(&["DEL", "leasehold:card"]);
            }
        }
        formed.is_ok()
    });
}
