//! What facts mean: one test for each finding that is not green.

mod quorum;
mod server;

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::member::{MemberStatus, RunId};
use leasehold_redis::{Examination, KeyCensus, Persistence, ServerFacts, Transport};

/// A server without problems.
fn well(run: &str) -> Examination {
    let day = Duration::from_secs(86_400);
    let mut status = MemberStatus::new(RunId::new(run), WallTime::from_micros(1), day);
    status.durable = true;
    Examination {
        transport: Transport::Tls,
        user: "ann".into(),
        prefix: String::new(),
        accepts_eviction: false,
        speaks_resp3: true,
        server: Ok(ServerFacts {
            version: "7.2.4".into(),
            is_primary: true,
            is_cluster_node: false,
            max_memory: 0,
            eviction_policy: "noeviction".into(),
        }),
        status: Ok(status),
        persistence: Ok(Persistence {
            append_only: "yes".into(),
            append_fsync: "always".into(),
            no_fsync_on_rewrite: "no".into(),
            last_write_was_ok: true,
            replicas: 0,
        }),
        round_trips: [1, 2, 3].map(Duration::from_millis).to_vec(),
        clock_offset: Some(0),
        missing_rights: Vec::new(),
        refuses_locks: None,
        keys: Ok(KeyCensus {
            is_complete: true,
            ..KeyCensus::default()
        }),
    }
}
