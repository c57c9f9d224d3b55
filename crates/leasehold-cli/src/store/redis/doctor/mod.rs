//! What is wrong with the servers of a store. `server`, `quorum` and `restart` are pure.

mod quorum;
mod restart;
mod server;
mod snapshot;
#[cfg(test)]
mod tests;

use std::time::Duration;

use leasehold::member::MemberStatus;
use leasehold_redis::RedisStore;
use serde_json::{Value, json};

use crate::output::failure::Failure;
use crate::output::report::{Report, Subject};
use crate::output::time_text::millis;
use snapshot::{Server, Snapshot};

/// All checks of the servers of a store.
pub(super) async fn report(store: &RedisStore, limit: Duration) -> Result<Report, Failure> {
    let snapshot = Snapshot::find(store.clone().read_only(), limit).await?;
    let servers = snapshot.servers.iter().enumerate();
    let members = servers.map(|(index, server)| Subject {
        id: server.id.clone(),
        checks: quorum::of_server(&snapshot, index),
        facts: facts(server),
    });
    Ok(Report {
        store: store.to_string(),
        majority: Some((snapshot.voting(), snapshot.needed())),
        checks: quorum::of_store(&snapshot),
        members: members.collect(),
    })
}

/// The facts behind the findings, as numbers for programs.
fn facts(server: &Server) -> Value {
    let found = server.found.as_ref().ok();
    let status = server.status();
    let median = found.and_then(|found| found.round_trips.get(found.round_trips.len() / 2));
    let version = found.and_then(|found| Some(&found.server.as_ref().ok()?.version));
    let again = server.out.as_ref().and_then(|out| out.again);
    json!({
        "has_vote": server.out.is_none(),
        "no_vote_for_ms": again.map(millis),
        "version": version,
        "uptime_ms": status.map(|status| millis(status.uptime)),
        "durable": status.map(MemberStatus::will_remember),
        "round_trip_us": median.map(|median| u64::try_from(median.as_micros()).unwrap_or(u64::MAX)),
        "clock_offset_us": server.clock_offset(),
    })
}
