use std::time::Duration;

use leasehold::{Quorum, blocking};
use leasehold_redis::RedisMember;
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

/// Makes a set of members that have just been started, all of which count at once.
pub(crate) fn form(urls: &[String], max_ttl: Duration) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let formed = runtime.expect("a runtime").block_on(async {
        // Where the connections live that it opens.
        quorum(urls, max_ttl).init().await
    });
    formed.unwrap_or_else(|error| panic!("{error}"));
}
