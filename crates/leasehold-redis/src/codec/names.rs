use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use leasehold::Key;
use leasehold::look::{ClientId, ClientInfo};

use super::expiry::milliseconds;
use crate::resp::CommandWriter;

/// The key of the member record. Each database has one, for all prefixes of locks.
pub(super) const MEMBER_RECORD: &str = "leasehold:member_record";

/// The key that has the presence of all clients.
pub const PRESENT: &str = "leasehold:present";

/// The entry of the fence counter.
pub(super) const COUNTER: &str = "f";

/// How long a counter outlives the last use of its lock, in milliseconds: 7 days.
pub(super) const REST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The keys of one lock. All have the same hash tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names<'k> {
    lock: Cow<'k, str>,
    /// The range of the hash tag within `lock`.
    tag: Range<usize>,
}

impl<'k> Names<'k> {
    /// Returns the names for a lock whose key at the server begins with `prefix`.
    pub fn new(prefix: &str, key: &'k Key) -> Self {
        let lock = if prefix.is_empty() {
            Cow::Borrowed(key.as_str())
        } else {
            Cow::Owned([prefix, key.as_str()].concat())
        };
        let tag = hash_tag(&lock);
        Self { lock, tag }
    }

    /// Returns the lock key.
    pub fn lock(&self) -> &str {
        &self.lock
    }

    /// Returns the key of a record of the lock. `kind` is one of `fence:0`, `queue`, `readers`,
    /// `slots`, `broken`, `record` and `version`.
    pub fn record(&self, kind: &str) -> String {
        self.parts(kind).map(String::from_utf8_lossy).concat()
    }

    /// Returns the key whose record is called `name`; `None` for another name.
    pub(crate) fn key_of_record(prefix: &str, name: &str) -> Option<Key> {
        // The tag, too, may contain what ends it.
        name.match_indices("}:").find_map(|(end, separator)| {
            let lock = &name[end + separator.len()..];
            let key = Key::new(lock.strip_prefix(prefix)?).ok()?;
            let is_named_so = Names::new(prefix, &key).record("record") == name;
            is_named_so.then_some(key)
        })
    }

    /// Writes one of the keys as an argument.
    pub(super) fn write(&self, out: &mut CommandWriter<'_>, kind: &str) {
        out.joined(&self.parts(kind));
    }

    /// Writes the five keys that all scripts take for a lock.
    pub(super) fn write_all(&self, out: &mut CommandWriter<'_>) {
        out.arg(self.lock());
        for kind in ["fence:0", "queue", "readers", "slots"] {
            self.write(out, kind);
        }
    }

    fn parts<'a>(&'a self, kind: &'a str) -> [&'a [u8]; 6] {
        let tag = &self.lock[self.tag.clone()];
        ["leasehold:", kind, ":{", tag, "}:", &self.lock].map(str::as_bytes)
    }
}

/// Returns the part of `key` that decides its slot: the text between the first `{` and the next `}`, unless
/// it is empty; otherwise the whole key (Redis Cluster specification, "Hash tags").
pub(crate) fn hash_tag(key: &str) -> Range<usize> {
    let place = |of: u8, from: usize| {
        let rest = key.as_bytes().get(from..)?;
        Some(from + rest.iter().position(|byte| *byte == of)?)
    };
    let open = place(b'{', 0);
    let close = open.and_then(|open| place(b'}', open));
    match (open, close) {
        (Some(open), Some(close)) if open + 1 < close => open + 1..close,
        _ => 0..key.len(),
    }
}

/// Writes which process a client is, for people who inspect a lock. The server keeps that for `life`.
pub(crate) fn write_client_record(
    client: &ClientInfo,
    life: Duration,
    out: &mut CommandWriter<'_>,
) {
    let name = client_record(client.id);
    out.command("HSET").arg(&name);
    out.arg("host").arg(&client.host);
    out.arg("pid").number(client.pid.into());
    out.arg("program").arg(&client.program);
    out.arg("since").number(client.since.as_micros());
    let texts = [
        ("user", &client.user),
        ("label", &client.label),
        ("command", &client.command),
    ];
    for (field, text) in texts {
        if let Some(text) = text {
            out.arg(field).arg(text.as_bytes());
        }
    }
    out.command("PEXPIRE").arg(&name).number(milliseconds(life));
}

/// Extends the record of a client to at least `life`. Servers before Redis 7.0 do not know `GT` and refuse.
pub(crate) fn extend_client_record(id: ClientId, life: Duration, out: &mut CommandWriter<'_>) {
    out.command("PEXPIRE").arg(client_record(id));
    out.number(milliseconds(life)).arg("GT");
}

/// Returns the key of the record of a client.
pub(crate) fn client_record(id: ClientId) -> String {
    format!("leasehold:client:{id}")
}

/// Returns the channel on which a server notifies a client.
pub fn inbox(client: ClientId) -> String {
    format!("leasehold:inbox:{client}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_lock_share_its_slot() {
        let key = Key::new("deploy").unwrap();
        let plain = Names::new("", &key);
        assert_eq!(plain.lock(), "deploy");
        let fence = "leasehold:fence:0:{deploy}:deploy";
        assert_eq!(plain.record("fence:0"), fence);
        let key = Key::new("{user7}/cart").unwrap();
        let tagged = Names::new("app:", &key);
        assert_eq!(tagged.lock(), "app:{user7}/cart");
        let queue = "leasehold:queue:{user7}:app:{user7}/cart";
        assert_eq!(tagged.record("queue"), queue);
    }

    #[test]
    fn name_of_a_record_leads_to_its_key() {
        for prefix in ["", "app:", "}:"] {
            for key in ["deploy", "{user7}/cart", "a}:b", "a}:{b}:c}:", "}:}:"] {
                let key = Key::new(key).unwrap();
                let name = Names::new(prefix, &key).record("record");
                assert_eq!(Names::key_of_record(prefix, &name), Some(key), "{name}");
            }
        }
        for other in ["leasehold:record:{a}:b", "leasehold:version:{a}:a", "{a}:a"] {
            assert_eq!(Names::key_of_record("", other), None, "{other}");
        }
        assert_eq!(Names::key_of_record("app:", "leasehold:record:{a}:a"), None);
    }

    #[test]
    fn hash_tags_follow_the_specification_of_redis() {
        for (key, tag) in [
            ("a{}b{c}", "a{}b{c}"),
            ("a{b", "a{b"),
            ("a}b{c}d}", "c"),
            ("{{b}", "{b"),
        ] {
            assert_eq!(&key[hash_tag(key)], tag, "{key}");
        }
    }

    #[test]
    fn scripts_use_the_same_constants() {
        let text = crate::scripts::ACQUIRE.text;
        assert!(text.contains(&format!("local REST_MS = {REST_MS}\n")));
        assert!(text.contains(&format!("proposal, '{COUNTER}')")));
    }
}
