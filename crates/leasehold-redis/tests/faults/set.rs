use std::time::Duration;

use leasehold::{Quorum, blocking};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::LIMIT;

/// The TTL of every lock.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// The longest TTL that the set allows: a member that forgot is left out a second longer.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(3);

/// By how much the members' clocks may differ.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_millis(150);

/// The set whose members are at `urls`, as all clients know it.
pub(crate) fn quorum(urls: &[String]) -> Quorum {
    let members = RedisMember::all(urls).unwrap_or_else(|error| panic!("{error}"));
    let quorum = Quorum::new(members).unwrap_or_else(|error| panic!("{error}"));
    quorum.clock_tolerance(CLOCK_TOLERANCE)
}

/// A client of that set.
pub(crate) fn client(urls: &[String]) -> blocking::Client {
    blocking::Client::new(quorum(urls))
}

/// Makes a set of members that have just been started.
pub(crate) fn form(urls: &[String]) {
    let lock = client(urls).lock("forming").ttl(TTL).wait(LIMIT);
    let guard = lock.acquire().unwrap_or_else(|error| panic!("{error}"));
    let released = guard.release();
    released.unwrap_or_else(|error| panic!("{error}"));
}
