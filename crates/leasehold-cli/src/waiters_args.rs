use clap::Args;

use crate::args::StoreArgs;

/// The arguments of `waiters`.
#[derive(Debug, Args)]
pub(crate) struct WaitersArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`; `queue`, whether
    /// the store has a queue; `waiters`, the next one first, each with `place` (from 1), `mode`,
    /// `permits`, `client` (`id`, `host`, `pid`, `program`, `since`), `since` and `waiting_ms`. Unknown
    /// values are null.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}
