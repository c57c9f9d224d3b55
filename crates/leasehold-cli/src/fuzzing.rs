//! What the fuzz target calls; `fuzz/README.md` says how to run it.

use std::path::Path;

use crate::commands::holding::once::read_stored;
use crate::options::span::span;
use crate::store::address;
use crate::store::addresses::parse_file;

/// The configuration file, the addresses and spans in it, and what `once` stores.
pub(crate) fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = parse_file(&text, Path::new("leasehold.toml")) {
        let _ = error.to_string();
    }
    address::read(&text);
    let _ = span(&text);
    read_stored(bytes);
}

#[cfg(test)]
mod tests {
    #[test]
    fn settings_of_any_bytes_are_read_safely() {
        leasehold_testkit::feed_seeds("config", 2_000, super::config);
    }
}
