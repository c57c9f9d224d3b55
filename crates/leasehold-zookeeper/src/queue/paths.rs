use std::fmt::Write as _;

use leasehold::Key;
use leasehold::store::RecordKey;

/// The nodes of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paths {
    /// The folder of the lock, a container: the server removes it some time after its last child.
    pub(crate) lock: String,
    /// The counter of fences of this key and of others. It stays, so fences grow although the folder goes.
    pub(crate) fence: String,
    /// The record of the last break.
    pub(crate) broken: String,
}

/// How many counters of fences there are. Fewer make grants of different locks collide more often.
const COUNTERS: u32 = 256;

impl Paths {
    pub(crate) fn of(root: &str, key: &Key) -> Self {
        let name = encoded(key.as_str());
        Self {
            lock: joined(root, &name),
            fence: format!("{}/{:02x}", fences(root), hash(&name) % COUNTERS),
            broken: joined(root, &format!("leasehold:broken/{name}")),
        }
    }

    /// Returns the folder of a record's neighbours, and the record.
    pub(crate) fn of_record(root: &str, record: &RecordKey) -> (String, String) {
        let name = encoded(record.key.as_str());
        let folder = format!("{}/{:02x}", records(root), hash(&name) % COUNTERS);
        let path = format!("{folder}/{name}");
        (folder, path)
    }
}

/// Returns the folder of the counters.
pub(crate) fn fences(root: &str) -> String {
    joined(root, "leasehold:fences")
}

/// Returns the folder of the folders of records.
pub(crate) fn records(root: &str) -> String {
    joined(root, "leasehold:records")
}

fn joined(root: &str, name: &str) -> String {
    format!("{}/{name}", root.trim_end_matches('/'))
}

/// Whether the server allows no node with this character in its name. Java has two characters for one above U+FFFF, and
/// allows neither.
pub(crate) fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// Returns the name of the node for a key. It is the key itself, unless that has a slash or another character that no
/// node may have.
fn encoded(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    let is_reserved = matches!(key, "." | ".." | "zookeeper");
    for (position, c) in key.char_indices() {
        let first = is_reserved && position == 0;
        if first || matches!(c, '/' | '%') || is_forbidden(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string does not fail.
                let _ = write!(name, "%{byte:02X}");
            }
        } else {
            name.push(c);
        }
    }
    name
}

/// Returns the key whose folder has this name; `None` for what is no lock.
pub(crate) fn key_of(name: &str) -> Option<Key> {
    let decoded = percent_encoding::percent_decode_str(name)
        .decode_utf8()
        .ok()?;
    let key = Key::new(&*decoded).ok()?;
    (encoded(key.as_str()) == name).then_some(key)
}

/// FNV-1a, which is the same everywhere.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_nodes_of_their_own() {
        for (key, name) in [
            ("deploy", "deploy"),
            ("a/b", "a%2Fb"),
            ("100%", "100%25"),
            (".", "%2E"),
            ("..", "%2E."),
            ("...", "..."),
            ("zookeeper", "%7Aookeeper"),
            ("Ключ 鍵 {t}", "Ключ 鍵 {t}"),
            ("\u{fffd}", "%EF%BF%BD"),
        ] {
            let key = Key::new(key).unwrap();
            assert_eq!(encoded(key.as_str()), name);
            assert_eq!(key_of(name), Some(key), "{name}");
        }
        for other in ["leasehold:fences", "zookeeper", "%2f", "%FF"] {
            assert_eq!(key_of(other), None, "{other}");
        }
    }

    #[test]
    fn each_character_has_its_node() {
        // What a key may have, in keys of 32 characters.
        let allowed = |c: &char| Key::new(format!("a{c}")).is_ok();
        let characters: Vec<char> = ('\0'..=char::MAX).filter(allowed).collect();
        assert!(characters.len() > 1_000_000);
        for some in characters.chunks(32) {
            let text = String::from_iter(some);
            let (key, name) = (Key::new(&*text).unwrap(), encoded(&text));
            assert!(!name.contains(|c| c == '/' || is_forbidden(c)), "{name:?}");
            assert_eq!(key_of(&name), Some(key), "{name:?}");
            if !text.contains(|c| matches!(c, '/' | '%') || is_forbidden(c)) {
                assert_eq!(name, text, "it needs no other name");
            }
        }
    }

    /// Java sees two halves of such a character, and its servers refuse each.
    #[test]
    fn characters_above_the_first_plane_are_encoded() {
        assert_eq!(encoded("🔒"), "%F0%9F%94%92");
        assert_eq!(encoded("鍵🔒/x"), "鍵%F0%9F%94%92%2Fx");
    }

    #[test]
    fn paths_are_under_the_root() {
        let key = Key::new("a/b").unwrap();
        let paths = Paths::of("/", &key);
        assert_eq!(paths.lock, "/a%2Fb");
        let deep = Paths::of("/x/y", &key);
        assert_eq!(deep.broken, "/x/y/leasehold:broken/a%2Fb");
        assert_eq!(deep.fence, format!("/x/y{}", paths.fence));
        assert!(paths.fence.starts_with("/leasehold:fences/"));
    }
}
