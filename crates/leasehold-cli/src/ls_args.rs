use clap::Args;
use leasehold::Pattern;

use crate::args::StoreArgs;

/// The arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Show at most so many locks, the first ones by name, 1 to 100000.
    #[arg(
        long,
        value_name = "N",
        value_parser = limit,
        allow_negative_numbers = true,
        default_value_t = 1000
    )]
    pub(crate) limit: usize,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field of these changes its
    /// meaning or goes; others may come.
    ///
    /// `store`, `pattern`; `members`, how many servers the store has; `unanswered`, those that did not
    /// answer, each with `id` and `reason`; `more`, whether --limit left locks out; `locks`, each with
    /// `lock`, `held` (whether a majority names one holder), `agreed` (whether all servers that answered
    /// name the same) and `holders`: those of `status`, each with `members`, how many servers name it.
    #[arg(long)]
    pub(crate) json: bool,

    /// Which locks: `*` stands for any text, `?` for one character.
    ///
    /// On Redis, a string that leasehold did not write is listed as held by a client of another library if
    /// the pattern or the store's prefix begins with text. Otherwise it is listed only if a leasehold client
    /// has asked for that lock within 7 days.
    #[arg(value_name = "PATTERN", value_parser = pattern, default_value = "*")]
    pub(crate) pattern: Pattern,
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("1 to 100000 locks can be shown".into()),
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.reason().to_owned())
}
