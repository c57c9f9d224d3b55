use clap::Args;
use leasehold::Pattern;

use crate::args::StoreArgs;

/// The arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Show at most N locks, in the order of names, 1 to 100000.
    #[arg(
        long,
        value_name = "N",
        value_parser = limit,
        allow_negative_numbers = true,
        default_value_t = 1000
    )]
    pub(crate) limit: usize,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `store`, `pattern`; `members`,
    /// the number of servers of the store; `unanswered`, the servers that did not answer, each with `id`
    /// and `reason`; `more`, whether --limit left out locks; `locks`, each with `lock`, `held` (whether
    /// a majority names one holder), `agreed` (whether all servers that answered name the same) and
    /// `holders`, as in `status`, each with `members`, the number of servers that name it.
    #[arg(long)]
    pub(crate) json: bool,

    /// The names: `*` matches any text, `?` one character.
    ///
    /// On Redis, a string that leasehold did not write is listed as held by a client of another library if
    /// the pattern or the prefix of the store begins with text. Otherwise it is listed only if a leasehold
    /// client has asked for that lock within 7 days.
    #[arg(value_name = "PATTERN", value_parser = pattern, default_value = "*")]
    pub(crate) pattern: Pattern,
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("the limit must be 1 to 100000".into()),
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.reason().to_owned())
}
