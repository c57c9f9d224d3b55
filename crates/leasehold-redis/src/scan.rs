//! Finding the locks of a server among all that it holds.

use std::collections::{BTreeMap, HashSet};

use leasehold::{Error, Key, Mode, Pattern, Survey, SurveyedLock};

use crate::attempt::garbled;
use crate::connection::{Answer, Command, Link, Refusal, read_time};
use crate::look::{alone, ask, foreign, name, noted, remaining, those_together, together};
use crate::wire::{LockValue, Records};

/// How many keys the server looks at before it does something else.
const SCAN_STEP: u64 = 512;

/// How many locks are asked about in one write.
const AT_ONCE: usize = 64;

/// How many values one reply has. The keys may be the user's data, and a long reply is not read.
const VALUES_AT_ONCE: usize = 16;

/// At most so many of those who share one of many locks are shown: all who can have permits.
const SHOWN_MAX: u64 = 128;

/// The locks of this library whose names begin with `name_prefix`.
pub(crate) async fn list(
    link: &Link,
    key_prefix: &str,
    name_prefix: &str,
    limit: usize,
) -> Result<Vec<Key>, Error> {
    // A server may name a key twice while its table grows.
    let mut found = HashSet::new();
    let mut scan = Scan::new(key_prefix, name_prefix);
    while found.len() < limit
        && let Some(held) = scan.step(link).await?
    {
        let ours = held.into_iter().filter(|(_, value)| !is_foreign(*value));
        found.extend(ours.map(|(key, _)| key));
    }
    Ok(found.into_iter().take(limit).collect())
}

/// The first `limit` locks, by name, that match, with their holders.
///
/// A string that this library did not write may be a lock of another library or any other data. It is
/// listed where a prefix narrows the names down, and otherwise where a client of this library has asked for
/// the lock lately, which leaves a fence counter. So a database full of other data is not listed.
pub(crate) async fn survey(
    link: &Link,
    key_prefix: &str,
    pattern: &Pattern,
    limit: usize,
) -> Result<Survey, Error> {
    let (mut found, mut more) = (BTreeMap::new(), false);
    let mut scan = Scan::new(key_prefix, pattern.prefix());
    let is_narrow = !(key_prefix.is_empty() && pattern.prefix().is_empty());
    while let Some(mut held) = scan.step(link).await? {
        held.retain(|(key, _)| pattern.matches(key.as_str()));
        if !is_narrow {
            held = without_other_data(link, key_prefix, held).await?;
        }
        found.extend(held);
        // In no order they come: the first ones are known only at the end.
        while found.len() > limit {
            found.pop_last();
            more = true;
        }
    }
    let found: Vec<_> = found.into_iter().collect();
    let mut locks = Vec::with_capacity(found.len());
    for part in found.chunks(AT_ONCE) {
        locks.extend(details(link, key_prefix, part).await?);
    }
    Ok(Survey::new(locks, more))
}

/// Those of `found` that this library wrote, or that have a fence counter.
async fn without_other_data(
    link: &Link,
    key_prefix: &str,
    found: Vec<(Key, LockValue)>,
) -> Result<Vec<(Key, LockValue)>, Error> {
    let foreign = found.iter().filter(|(_, value)| is_foreign(*value));
    let questions: Vec<Command> = foreign
        .map(|(key, _)| Command::new("EXISTS").joined(&Records::of(key_prefix, key).fence()))
        .collect();
    if questions.is_empty() {
        return Ok(found);
    }
    let answers = ask(link, questions, |_| false).await?;
    let mut counters = answers.iter().map(|answer| answer.as_integer() == Some(1));
    let is_lock =
        |(_, value): &(Key, LockValue)| !is_foreign(*value) || counters.next().unwrap_or_default();
    Ok(found.into_iter().filter(is_lock).collect())
}

fn is_foreign(value: LockValue) -> bool {
    matches!(value, LockValue::Foreign(_))
}

/// Who holds each of these locks. What is free by now is left out.
async fn details(
    link: &Link,
    key_prefix: &str,
    found: &[(Key, LockValue)],
) -> Result<Vec<SurveyedLock>, Error> {
    let mut questions = vec![Command::new("TIME")];
    for (key, value) in found {
        let records = Records::of(key_prefix, key);
        match value {
            LockValue::Owner(owner) | LockValue::Broken(owner) => questions.extend([
                Command::new("PTTL").arg(records.lock()),
                noted(&records, *owner),
            ]),
            LockValue::Foreign(_) => questions.push(Command::new("PTTL").arg(records.lock())),
            _ => questions.push(those_together(&records, SHOWN_MAX)),
        }
    }
    let answers = ask(link, questions, Refusal::is_wrong_type).await?;
    let mut answers = answers.iter();
    let now = answers
        .next()
        .and_then(read_time)
        .ok_or_else(|| garbled("TIME"))?;
    let mut all = Vec::with_capacity(found.len());
    for (key, value) in found {
        let answer = answers.next().ok_or_else(|| garbled("PTTL"))?;
        let mode = match *value {
            LockValue::Owner(owner) | LockValue::Broken(owner) => {
                let (left, noted) = (answer.as_integer(), answers.next());
                if left != Some(GONE) {
                    let left = left.and_then(remaining);
                    all.push((key.clone(), vec![alone(*value, owner, left, noted)]));
                }
                continue;
            }
            LockValue::Foreign(form) => {
                let left = answer.as_integer();
                if left != Some(GONE) {
                    let holder = foreign(form, left.and_then(remaining));
                    all.push((key.clone(), vec![holder]));
                }
                continue;
            }
            LockValue::Permits(permits) => Mode::Permit(permits),
            _ => Mode::Shared,
        };
        let holders = together(answer, mode, now).unwrap_or_default();
        if !holders.is_empty() {
            all.push((key.clone(), holders));
        }
    }
    name(link, all.iter_mut().flat_map(|(_, holders)| holders)).await?;
    let locks = all.into_iter();
    Ok(locks
        .map(|(key, holders)| SurveyedLock::new(key, holders))
        .collect())
}

/// What PTTL says where there is no key.
const GONE: i64 = -2;

/// A walk over all keys of a server, in steps that are short for it, however many keys there are.
struct Scan<'a> {
    key_prefix: &'a str,
    pattern: String,
    /// Where the next step begins; `None` at the end.
    cursor: Option<String>,
}

impl<'a> Scan<'a> {
    fn new(key_prefix: &'a str, name_prefix: &str) -> Self {
        Self {
            key_prefix,
            pattern: format!("{}*", escaped(&format!("{key_prefix}{name_prefix}"))),
            cursor: Some("0".to_owned()),
        }
    }

    /// What the next strings hold that may be locks; `None` at the end.
    async fn step(&mut self, link: &Link) -> Result<Option<Vec<(Key, LockValue)>>, Error> {
        let Some(cursor) = self.cursor.take() else {
            return Ok(None);
        };
        let question = Command::new("SCAN")
            .arg(&cursor)
            .arg("MATCH")
            .arg(&self.pattern)
            .arg("COUNT")
            .number(SCAN_STEP)
            .arg("TYPE")
            .arg("string");
        let answers = ask(link, vec![question], |_| false).await?;
        let Some([next, Answer::List(keys)]) = answers.first().and_then(Answer::as_list) else {
            return Err(garbled("SCAN"));
        };
        let next = next.as_text().ok_or_else(|| garbled("SCAN"))?;
        self.cursor = (next != "0").then(|| next.to_owned());
        held(link, self.key_prefix, keys).await.map(Some)
    }
}

/// The values of `keys` that are or may be held locks.
async fn held(
    link: &Link,
    key_prefix: &str,
    keys: &[Answer],
) -> Result<Vec<(Key, LockValue)>, Error> {
    let keys: Vec<&str> = keys.iter().filter_map(Answer::as_text).collect();
    let values_of = |keys: &[&str]| keys.iter().fold(Command::new("MGET"), Command::arg);
    let questions = keys.chunks(VALUES_AT_ONCE).map(values_of).collect();
    let answers = ask(link, questions, |_| false).await?;
    let mut held = Vec::new();
    for (keys, answer) in keys.chunks(VALUES_AT_ONCE).zip(&answers) {
        let values = answer.as_list().ok_or_else(|| garbled("MGET"))?;
        let locks = keys.iter().zip(values).filter_map(|(key, value)| {
            let Answer::Text(value) = value else {
                return None;
            };
            let value = LockValue::read(value);
            let is_record = is_foreign(value) && key.starts_with("leasehold:");
            if is_record || matches!(value, LockValue::Reserved(..)) {
                return None;
            }
            let name = key.strip_prefix(key_prefix)?;
            Some((Key::new(name).ok()?, value))
        });
        held.extend(locks);
    }
    Ok(held)
}

/// `text` as a glob pattern that matches itself alone.
pub(crate) fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_literally() {
        assert_eq!(escaped("a*b?[c]\\^-"), r"a\*b\?\[c\]\\\^\-");
        assert_eq!(escaped("Ключ{x}"), "Ключ{x}");
    }
}
