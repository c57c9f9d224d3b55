use std::time::Duration;

use leasehold::blocking;
use leasehold::store::MemberHealth;
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

/// Asks the members as a client does, until all others know that `member` is not durable.
pub(crate) fn until_durability_is_off(urls: &[String], max_ttl: Duration, member: usize) {
    let looking = client(urls, max_ttl);
    until("the other members know of it", || {
        let health = looking.health().unwrap_or_default();
        let member_record = |it: &MemberHealth| it.status.as_ref().ok()?.member_record.clone();
        let Some(member_records) = health.iter().map(member_record).collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        let mut others = member_records
            .iter()
            .enumerate()
            .filter(|(it, _)| *it != member);
        let off = member_records
            .get(member)
            .filter(|member_record| !member_record.durable);
        off.is_some_and(|off| {
            others.all(|(_, member_record)| {
                let known = member_record.observations.get(&health[member].id);
                known.is_some_and(|known| known.data_generation == off.data_generation)
            })
        })
    });
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
