//! What kinds of keys there are under the prefix of the locks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::Error;
use leasehold::clock::Clock;

use crate::attempt::garbled;
use crate::connection::{Answer, Command, Rights, Visit};
use crate::wire::LockValue;

/// The keys that locks may meet, as far as they were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyCensus {
    /// How many keys of the database were looked at.
    pub seen: usize,
    /// Whether these were all.
    pub is_complete: bool,
    /// How many under the prefix are strings, as locks are.
    pub strings: usize,
    /// Those under the prefix that are none, by type: how many, and the name of one. A lock of
    /// such a name is refused.
    pub foreign: BTreeMap<String, (usize, String)>,
    /// Locks that a client of this library has asked for lately, held by a value of another library that
    /// never expires: the name of the key, and what the value looks like.
    pub endless: Vec<(String, &'static str)>,
    /// Records of this library that have another type than it writes, with that type.
    pub damaged: Vec<(String, String)>,
}

/// How many keys the server looks at before it does something else.
const STEP: u64 = 512;

/// How often it is asked to: a database may hold millions.
const STEPS_MAX: usize = 16;

/// So many damaged records are named.
const NAMED_MAX: usize = 5;

/// After so long it is not asked again: from a server far away, a few keys have to do.
const PATIENCE: Duration = Duration::from_secs(1);

/// Looks at some thousand keys of the database of `visit`.
pub(super) async fn take(
    visit: &Visit,
    prefix: &str,
    clock: &dyn Clock,
) -> Result<KeyCensus, Error> {
    let mut census = KeyCensus::default();
    let mut suspects = Suspects::default();
    let mut cursor = "0".to_owned();
    let end = clock.now() + PATIENCE;
    for _ in 0..STEPS_MAX {
        if clock.now() >= end {
            break;
        }
        let scan = Command::new("SCAN").arg(&cursor).arg("COUNT").number(STEP);
        let answers = visit.ask(&[scan]).await?;
        allowed(visit, &answers, Rights("+scan"))?;
        let Some([next, Answer::List(keys)]) = answers.first().and_then(Answer::as_list) else {
            return Err(garbled("SCAN"));
        };
        cursor = next.as_text().ok_or_else(|| garbled("SCAN"))?.to_owned();
        census.seen += keys.len();
        // A name that is no text is none of a lock.
        let concerned = |key: &&str| key.starts_with(prefix) || key.starts_with("leasehold:");
        let keys: Vec<&str> = keys.iter().filter_map(Answer::as_text).collect();
        let keys: Vec<&str> = keys.into_iter().filter(concerned).collect();
        let ask = |key: &&str| Command::new("TYPE").arg(key);
        let answers = visit.ask(&keys.iter().map(ask).collect::<Vec<_>>()).await?;
        allowed(visit, &answers, Rights("+type"))?;
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
    census.endless = suspects.endless(visit).await?;
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

    async fn endless(&self, visit: &Visit) -> Result<Vec<(String, &'static str)>, Error> {
        let keys: Vec<&String> = self.strings.intersection(&self.used).collect();
        let ask = |key: &&String| [Command::new("PTTL").arg(key), Command::new("GET").arg(key)];
        let answers = visit
            .ask(&keys.iter().flat_map(ask).collect::<Vec<_>>())
            .await?;
        let found = keys.into_iter().zip(answers.chunks_exact(2));
        let endless = found.filter_map(|(key, answers)| match answers {
            [Answer::Integer(NO_END), Answer::Text(value)] => match LockValue::read(value) {
                LockValue::Foreign(form) => Some((key.clone(), form.words())),
                _ => None,
            },
            _ => None,
        });
        Ok(endless.take(NAMED_MAX).collect())
    }
}

/// What `PTTL` answers for a key that never expires.
const NO_END: i64 = -1;

fn allowed(visit: &Visit, answers: &[Answer], rights: Rights) -> Result<(), Error> {
    let refused = answers.iter().find_map(|answer| match answer {
        Answer::Refused(refusal) => Some(refusal.to_error(visit.user(), rights)),
        _ => None,
    });
    refused.map_or(Ok(()), Err)
}

impl KeyCensus {
    fn count(&mut self, key: &str, kind: &str) {
        if kind == "none" {
            // It ended meanwhile.
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

/// The type that this library writes for a record whose name goes on like this behind `leasehold:`.
fn written(rest: &str) -> Option<&'static str> {
    match rest.split(':').next()? {
        "fence" | "readers" | "queue" | "offered" => Some("zset"),
        "slots" | "client" | "card" | "record" | "broken" => Some("hash"),
        "stamp" => Some("string"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_by_what_a_lock_makes_of_them() {
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
            ("leasehold:card", "hash"),
            ("leasehold:record:{a}:a", "hash"),
            ("leasehold:record:{b}:b", "list"),
            ("leasehold:stamp:{a}:a", "string"),
            ("leasehold:stamp:{b}:b", "hash"),
            ("leasehold:broken:{a}:a", "hash"),
            ("leasehold:fenced:{b}:b", "string"),
        ] {
            census.count(key, kind);
        }
        assert_eq!(census.strings, 1);
        assert_eq!(census.foreign["hash"], (2, "redisson".into()));
        assert_eq!(census.foreign["list"], (1, "jobs".into()));
        assert_eq!(census.foreign.len(), 2, "what has ended is of no kind");
        let names: Vec<_> = census.damaged.iter().map(|(key, _)| &**key).collect();
        assert_eq!(
            names,
            [
                "leasehold:fence:0:{b}:b",
                "leasehold:slots:{b}:b",
                "leasehold:record:{b}:b",
                "leasehold:stamp:{b}:b"
            ]
        );
    }
}
