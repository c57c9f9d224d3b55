use clap::Args;

use crate::args::StoreArgs;

/// The arguments of `waiters`.
#[derive(Debug, Args)]
pub(crate) struct WaitersArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field of these changes its
    /// meaning or goes; others may come.
    ///
    /// `lock`, `store`; `queue`, whether the store keeps one; `waiters`, the next one first, each with
    /// `place` (from 1 on), `mode`, `permits`, `client` (`id`, `host`, `pid`, `program`, `since`), `since`
    /// and `waiting_ms`. What is not known is null.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}
