use std::time::Duration;

use clap::Args;

use crate::options::span::span;

/// The title above these options in help.
const STORE_OPTIONS: &str = "Store options";

/// Which store to use. Part of most subcommands.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// Use this store: one URL, or several for a quorum.
    ///
    /// A URL is redis://…, rediss://… (TLS), unix://… (a socket) or file:///folder. Several Redis URLs,
    /// separated by commas, form a quorum. Default: LEASEHOLD_STORE, then leasehold.toml in the
    /// configuration folder, then files of this machine and user.
    #[arg(
        long,
        global = true,
        help_heading = STORE_OPTIONS,
        value_name = "URL,URL,…",
        conflicts_with = "local"
    )]
    pub(crate) store: Option<String>,

    /// Use the files of this machine and user.
    ///
    /// Ignores every configured store.
    #[arg(long, global = true, help_heading = STORE_OPTIONS)]
    pub(crate) local: bool,

    /// Set the longest TTL in the quorum [default: 60s].
    ///
    /// All clients of a quorum must use the same value. A server that may have forgotten locks has no
    /// vote for this time and a second.
    #[arg(long, global = true, help_heading = STORE_OPTIONS, value_name = "SPAN", value_parser = span, conflicts_with = "local")]
    pub(crate) max_ttl: Option<Duration>,

    /// Set the tolerated clock difference [default: 250ms].
    ///
    /// The clocks of the servers of a quorum may differ by at most this much. All clients must use the
    /// same value. A TTL must be at least ten times as long.
    #[arg(long, global = true, help_heading = STORE_OPTIONS, value_name = "SPAN", value_parser = span, conflicts_with = "local")]
    pub(crate) clock_tolerance: Option<Duration>,
}
