use std::time::Duration;

use clap::Args;

use crate::options::store_args::StoreArgs;
use crate::options::timeout_args::timeout_span;

/// The arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Count a server as silent if it has not answered within SPAN.
    #[arg(long, value_name = "SPAN", value_parser = timeout_span, default_value = "2s")]
    pub(crate) timeout: Duration,

    /// Also show what is green.
    #[arg(long)]
    pub(crate) all: bool,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change no field and no id. `store`; `verdict`,
    /// the worst of all checks: `green`, `yellow` or `red`; `voting` and `needed` (how many servers
    /// have a vote and how many must; null for files); `checks` of the store as a whole; `members`, each
    /// with `id`, `checks` and `facts`: `has_vote`, `no_vote_for_ms`, `version`,
    /// `uptime_ms`, `durable`, `round_trip_us`, `clock_offset_us` (null if unknown); for etcd: `version`,
    /// `is_leader`, `database_bytes`, `round_trip_us`; for ZooKeeper also `mode`.
    ///
    /// A check has `id`, `verdict`, `found`, `why` (why it matters) and `remedy`; the last two are null
    /// if nothing is wrong. Ids for a store of servers: `members`, `quorum`, `generation`, `once`,
    /// `own_clock`;
    /// for each server: `reachable`, `encryption`, `version`, `role`, `eviction`, `writes`,
    /// `persistence`, `rights`, `push`, `keys`, `round_trip`, `clock`, `same_server`, `record`, `vote`,
    /// `restart`; for etcd: `quorum`, `members`, `encryption`, `rights`, `lease`, and for each server:
    /// `reachable`, `version`, `role`, `round_trip`, `read`, `database`; for ZooKeeper also `versions`, `session`,
    /// `timeout`, `root`; for PostgreSQL also `encoding`, `schema`, `session`, `durability`, `failover`,
    /// `connections`; for files: `folder`, `owner`, `file_system`, `fences`, `flock`, `room`, `locks`. A check that
    /// does not apply is left out.
    #[arg(long)]
    pub(crate) json: bool,
}
