use clap::Args;

use crate::args::StoreArgs;

/// The arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field and no id of these changes
    /// its meaning or goes; others may come.
    ///
    /// `store`; `verdict`, the worst of all: `green`, `yellow` or `red`; `counting` and `needed` (how many
    /// servers count and must; null for files); `checks` of the store as a whole; `members`, each with `id`,
    /// `checks` and `facts`: `counts`, `counts_again_ms`, `version`, `uptime_ms`, `durable`,
    /// `round_trip_us`, `clock_offset_us` (null where unknown).
    ///
    /// A check has `id`, `verdict`, `found`, `why` (why it matters) and `remedy`, the last two null where
    /// nothing is wrong. Ids of a store of servers: `members`, `quorum`, `generation`, `own_clock`; of each
    /// server: `reachable`, `encryption`, `version`, `role`, `eviction`, `writes`, `persistence`, `rights`,
    /// `push`, `keys`, `round_trip`, `clock`, `same_server`, `card`, `counts`, `restart`; of files: `folder`,
    /// `owner`, `file_system`, `fences`, `flock`, `room`, `locks`. One that does not apply is left out.
    #[arg(long)]
    pub(crate) json: bool,
}
