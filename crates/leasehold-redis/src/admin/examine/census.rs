//! The kinds of keys under the prefix of the locks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::Error;
use leasehold::clock::Clock;

use crate::admin::foreign::Form;
use crate::codec::{LockValue, Rights, invalid_response, refused};
use crate::connection::Probe;
use crate::resp::{CommandWriter, Value};

/// The keys of a database that could matter to locks. The scan may end before the last key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyCensus {
    /// How many keys of the database the scan included.
    pub seen: usize,
    /// Whether the scan included all keys.
    pub is_complete: bool,
    /// How many keys under the prefix are strings, as locks are.
    pub strings: usize,
    /// The keys under the prefix that have other types. For each type: how many there are, and the name of
    /// one. A lock cannot have such a name.
    pub foreign: BTreeMap<String, (usize, String)>,
    /// Locks that a client of this library asked for recently, and that another library holds with a value
    /// that never expires: the name of the key, and what the value looks like.
    pub endless: Vec<(String, &'static str)>,
    /// Records of locks that have the wrong type, with that type.
    pub damaged: Vec<(String, String)>,
}

/// How many keys the server looks at before it serves other clients.
const STEP: u64 = 512;

/// The most steps: a database may hold millions of keys.
const STEPS_MAX: usize = 16;

/// The greatest number of damaged records that are named, and of locks that never expire.
const NAMED_MAX: usize = 5;

/// No step begins after this time. From a server far away a few keys are enough.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Looks at a few thousand keys of the database.
pub(super) async fn take(
    probe: &mut Probe,
    user: &str,
    prefix: &str,
    clock: &dyn Clock,
) -> Result<KeyCensus, Error> {
    let mut census = KeyCensus::default();
    let mut suspects = Suspects::default();
    let mut cursor = "0".to_owned();
    let end = clock.now() + TIMEOUT;
    for _ in 0..STEPS_MAX {
        if clock.now() >= end {
            break;
        }
        let scan = |out: &mut CommandWriter<'_>| {
            out.command("SCAN").arg(&cursor).arg("COUNT").number(STEP);
        };
        let answers = probe.ask(scan).await?;
        check(&answers, user, Rights("+scan"))?;
        let Some([next, Value::Array(keys)]) = answers.first().and_then(Value::as_array) else {
            return Err(invalid_response("SCAN"));
        };
        cursor = next
            .as_text()
            .ok_or_else(|| invalid_response("SCAN"))?
            .to_owned();
        census.seen += keys.len();
        // The names of locks are UTF-8.
        let keys = keys.iter().filter_map(Value::as_text);
        let keys = keys.filter(|key| key.starts_with(prefix) || key.starts_with("leasehold:"));
        let keys: Vec<&str> = keys.collect();
        let types = |out: &mut CommandWriter<'_>| {
            for key in &keys {
                out.command("TYPE").arg(key);
            }
        };
        let answers = probe.ask(types).await?;
        check(&answers, user, Rights("+type"))?;
        for (key, answer) in keys.iter().zip(&answers) {
            let kind = answer.as_text().unwrap_or("none");
            census.count(key, kind);
            suspects.see(key, kind);
        }
        if cursor == "0" {
            census.is_complete = true;
            break;
        }
    }
    census.endless = suspects.endless(probe).await?;
    Ok(census)
}

/// The strings that may be locks, and the locks that have a fence counter.
#[derive(Debug, Default)]
struct Suspects {
    strings: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl Suspects {
    fn see(&mut self, key: &str, kind: &str) {
        let counted = key.strip_prefix("leasehold:fence:0:{");
        if let Some((_, lock)) = counted.and_then(|rest| rest.split_once("}:")) {
            self.used.insert(lock.to_owned());
        } else if kind == "string" && !key.starts_with("leasehold:") {
            self.strings.insert(key.to_owned());
        }
    }

    async fn endless(&self, probe: &mut Probe) -> Result<Vec<(String, &'static str)>, Error> {
        let keys: Vec<&String> = self.strings.intersection(&self.used).collect();
        let ask = |out: &mut CommandWriter<'_>| {
            for key in &keys {
                out.command("PTTL").arg(key);
                out.command("GET").arg(key);
            }
        };
        let answers = probe.ask(ask).await?;
        let found = keys.iter().zip(answers.chunks_exact(2));
        let endless = found.filter_map(|(key, answers)| match answers {
            [Value::Integer(NO_END), Value::Bytes(value)]
                if LockValue::read(value) == LockValue::Foreign =>
            {
                Some(((*key).clone(), Form::of(value).words()))
            }
            _ => None,
        });
        Ok(endless.take(NAMED_MAX).collect())
    }
}

/// What `PTTL` answers for a key that never expires.
const NO_END: i64 = -1;

/// Returns the first error among the answers.
fn check(answers: &[Value], user: &str, rights: Rights) -> Result<(), Error> {
    let error = answers.iter().find_map(|answer| match answer {
        Value::Error { code, message } => Some(refused(code, message, user, rights)),
        _ => None,
    });
    error.map_or(Ok(()), Err)
}

impl KeyCensus {
    fn count(&mut self, key: &str, kind: &str) {
        if kind == "none" {
            // The key expired in the meantime.
            return;
        }
        if let Some(rest) = key.strip_prefix("leasehold:") {
            let damaged = written(rest).is_some_and(|written| written != kind);
            if damaged && self.damaged.len() < NAMED_MAX {
                self.damaged.push((key.into(), kind.into()));
            }
        } else if kind == "string" {
            self.strings += 1;
        } else {
            let (count, _) = self
                .foreign
                .entry(kind.into())
                .or_insert_with(|| (0, key.into()));
            *count += 1;
        }
    }
}

/// Returns the type that this library writes for a key. `rest` is what follows `leasehold:` in its name.
fn written(rest: &str) -> Option<&'static str> {
    match rest.split(':').next()? {
        "fence" | "readers" | "queue" | "present" => Some("zset"),
        "slots" | "client" | "member_record" | "record" | "broken" => Some("hash"),
        "version" => Some("string"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_by_their_type() {
        let mut census = KeyCensus::default();
        for (key, kind) in [
            ("deploy", "string"),
            ("redisson", "hash"),
            ("cart", "hash"),
            ("jobs", "list"),
            ("gone", "none"),
            ("leasehold:fence:0:{a}:a", "zset"),
            ("leasehold:fence:0:{b}:b", "string"),
            ("leasehold:slots:{b}:b", "zset"),
            ("leasehold:member_record", "hash"),
            ("leasehold:record:{a}:a", "hash"),
            ("leasehold:record:{b}:b", "list"),
            ("leasehold:version:{a}:a", "string"),
            ("leasehold:version:{b}:b", "hash"),
            ("leasehold:broken:{a}:a", "hash"),
            ("leasehold:fenced:{b}:b", "string"),
        ] {
            census.count(key, kind);
        }
        assert_eq!(census.strings, 1);
        assert_eq!(census.foreign["hash"], (2, "redisson".into()));
        assert_eq!(census.foreign["list"], (1, "jobs".into()));
        assert_eq!(census.foreign.len(), 2, "expired keys do not count");
        let names: Vec<_> = census.damaged.iter().map(|(key, _)| &**key).collect();
        assert_eq!(
            names,
            [
                "leasehold:fence:0:{b}:b",
                "leasehold:slots:{b}:b",
                "leasehold:record:{b}:b",
                "leasehold:version:{b}:b"
            ]
        );
    }
}
