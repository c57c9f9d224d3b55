//! What subcommands that list names take.

use leasehold::look::Pattern;

/// Parses how many names to list.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("the limit must be 1 to 100000".into()),
    }
}

/// Parses which names to list.
pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.reason().to_owned())
}
