use std::time::Duration;

use clap::Args;

use crate::options::span::span;
use crate::options::store_args::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Set the longest TTL in the quorum [default: 60s].
    ///
    /// A server that may have forgotten locks has no vote for this time and a second. All clients
    /// learn it from the servers, and it cannot be changed while they use the quorum.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) max_ttl: Option<Duration>,

    /// Set the tolerated clock difference [default: 250ms].
    ///
    /// The clocks of the servers may differ by at most this much. A TTL must be at least ten times as long. As
    /// --max-ttl, it cannot be changed while clients use the quorum.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) clock_tolerance: Option<Duration>,

    /// State that the servers were new before the first lock.
    ///
    /// Needed only if a client initialized the quorum, and locks may have been granted since. If a server had
    /// lost its data before, `once` may run a command twice.
    #[arg(long)]
    pub(crate) new: bool,

    /// Print one JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
