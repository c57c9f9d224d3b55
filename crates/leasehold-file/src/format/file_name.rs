//! Gives each key a file name, and never the same name to two keys.

use std::fmt::Write as _;

use leasehold::Key;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

/// The name of the file that locks `key`: the percent-encoded key and `.lock`, or, where that is
/// longer than 200 bytes, the key's SHA-256 and `.sha256`. The two endings keep a short key that
/// looks like a hash apart from a long one.
pub(crate) fn of_key(key: &Key) -> String {
    let mut name = utf8_percent_encode(key.as_str(), ENCODED).to_string();
    if name.len() <= LONGEST_ENCODED_KEY {
        name.push_str(ENDING_ENCODED);
        return name;
    }
    let mut name = String::with_capacity(64 + ENDING_HASHED.len());
    for byte in hash(key) {
        // Writing into a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name.push_str(ENDING_HASHED);
    name
}

/// What a file name says about the key of its lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The whole key.
    Key(Key),
    /// Only the hash; the file itself names its key.
    Hash,
    /// No lock file of ours.
    Foreign,
}

/// Reads what [`of_key`] wrote. A name that [`of_key`] would have written differently is foreign.
pub(crate) fn parse(name: &str) -> Named {
    if name.ends_with(ENDING_HASHED) {
        return Named::Hash;
    }
    let key = name
        .strip_suffix(ENDING_ENCODED)
        .and_then(|encoded| percent_decode_str(encoded).decode_utf8().ok())
        .and_then(|text| Key::new(text).ok());
    match key {
        Some(key) if of_key(&key) == name => Named::Key(key),
        _ => Named::Foreign,
    }
}

pub(crate) fn hash(key: &Key) -> [u8; 32] {
    Sha256::digest(key.as_str().as_bytes()).into()
}

const LONGEST_ENCODED_KEY: usize = 200;
const ENDING_ENCODED: &str = ".lock";
const ENDING_HASHED: &str = ".sha256";
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new(name).unwrap()
    }

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(of_key(&key("deploy")), "deploy.lock");
        assert_eq!(of_key(&key("Deploy")), "Deploy.lock");
        assert_eq!(of_key(&key("invoices/2026-11")), "invoices%2F2026-11.lock");
        assert_eq!(of_key(&key("a%2Fb")), "a%252Fb.lock");
        assert_eq!(of_key(&key(".")), "..lock");
        assert_eq!(of_key(&key("..")), "...lock");
        assert_eq!(of_key(&key("a b{ü}")), "a%20b%7B%C3%BC%7D.lock");
    }

    #[test]
    fn names_over_200_bytes_are_hashed() {
        let longest = "x".repeat(200);
        assert_eq!(of_key(&key(&longest)), format!("{longest}.lock"));
        let hashed = of_key(&key(&"x".repeat(201)));
        assert_eq!(hashed.len(), 64 + ".sha256".len());
        assert_eq!(parse(&hashed), Named::Hash);
    }

    /// Every key of a set made to collide has its own file, a legal name, and can be read back.
    #[test]
    fn no_two_keys_share_a_file() {
        let hash_of_long = of_key(&key(&"/".repeat(100)));
        let bare_hash = hash_of_long.trim_end_matches(".sha256").to_owned();
        let mut names = vec![hash_of_long, bare_hash.clone(), bare_hash + ".sha256.lock"];
        for text in [
            "a/b", "a%2Fb", "a%2fb", "a%252Fb", "a b", "a+b", "A", "a", ".", "..", "%",
        ] {
            names.push(text.to_owned());
            names.push(format!("{text}.lock"));
            names.push(format!("{text}.sha256"));
        }
        names.extend((1..=512).map(|length| "é/".repeat(length / 3 + 1)));
        names.extend((190..=512).map(|length| "y".repeat(length)));
        names.sort();
        names.dedup();
        let mut seen = HashMap::new();
        for text in names {
            let Ok(key) = Key::new(&text) else { continue };
            let name = of_key(&key);
            assert!(name.len() <= 255 && !name.contains('/') && name != "." && name != "..");
            match parse(&name) {
                Named::Key(read) => assert_eq!(read, key),
                Named::Hash => assert!(name.len() == 71),
                Named::Foreign => panic!("{name} is not recognised"),
            }
            assert_eq!(seen.insert(name, text.clone()), None, "{text}");
        }
    }

    #[test]
    fn names_that_we_would_not_write_are_foreign() {
        for name in [
            "a",
            "a%2fb.lock",
            "a b.lock",
            ".lock",
            "%FF.lock",
            "a.lck",
            "a%0Ab.lock",
        ] {
            assert_eq!(parse(name), Named::Foreign, "{name}");
        }
    }
}
