use std::time::Duration;

use clap::Args;
use leasehold::look::Pattern;

use crate::commands::looking::watch::watch_span;
use crate::options::listing::{limit, pattern};
use crate::options::store_args::StoreArgs;

/// The arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Ask the store again every SPAN.
    ///
    /// If an answer takes long, the pause is at least four times as long as that, so that a large store has little work.
    #[arg(long, value_name = "SPAN", value_parser = watch_span, default_value = "2s")]
    pub(crate) interval: Duration,

    /// Read at most N locks, in the order of names, 1 to 100000.
    #[arg(
        long,
        value_name = "N",
        value_parser = limit,
        allow_negative_numbers = true,
        default_value_t = 10_000
    )]
    pub(crate) limit: usize,

    /// The names: `*` matches any text, `?` one character.
    #[arg(value_name = "PATTERN", value_parser = pattern, default_value = "*")]
    pub(crate) pattern: Pattern,
}
