//! Finding the locks of a server among all of its keys.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::look::{Holder, ListedLock, LockListing, Pattern};
use leasehold::{Error, Key, Mode};

use super::foreign::Form;
use super::inspect::{
    TOGETHER, ask_note, ask_together, exclusive, foreign, read_together, remaining,
};
use super::server::Server;
use crate::codec::{LockValue, Names, read_time};
use crate::resp::{CommandWriter, Value};

/// How many keys the server looks at before it serves other clients.
const SCAN_STEP: u64 = 512;

/// How many locks one write handles.
const AT_ONCE: usize = 64;

/// How many values one reply has. The keys may be the user's data, and the client reads no long replies.
const VALUES_AT_ONCE: usize = 16;

/// The greatest number of holders shown for each lock: as many as can have permits.
const SHOWN_MAX: u64 = 128;

/// What PTTL answers if there is no key.
const GONE: i64 = -2;

/// A lock that is held, with the value of its lock key.
#[derive(Clone, Debug)]
struct HeldKey {
    value: LockValue,
    form: Form,
}

impl HeldKey {
    fn is_foreign(&self) -> bool {
        matches!(self.value, LockValue::Foreign | LockValue::OtherType(_))
    }
}

impl Server {
    /// Returns a lock of this library that is held, if there is one.
    pub(crate) async fn any_lock(&self) -> Result<Option<Key>, Error> {
        let mut scan = Scan::new(self, "");
        while let Some(held) = scan.step().await? {
            let ours = held.into_iter().find(|(_, found)| !found.is_foreign());
            if let Some((key, _)) = ours {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Returns whether the server has a fence counter of any lock.
    pub(crate) async fn has_counters(&self) -> Result<bool, Error> {
        let pattern = "leasehold:fence:0:*".to_owned();
        let mut scan = Scan::of(self, pattern, "zset");
        while let Some(keys) = scan.keys().await? {
            if !keys.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the first `limit` locks by name that match, with their holders.
    ///
    /// A string that this library did not write may be a lock of another library or any other data. It is
    /// listed if a prefix narrows the names down. Otherwise it is listed only if the lock has a fence
    /// counter, because a client of this library recently asked for it. So other data does not fill the
    /// list.
    pub(crate) async fn list_locks(
        &self,
        pattern: &Pattern,
        limit: usize,
    ) -> Result<LockListing, Error> {
        let (mut found, mut more) = (BTreeMap::new(), false);
        let mut scan = Scan::new(self, pattern.prefix());
        let is_narrow = !(self.url().prefix.is_empty() && pattern.prefix().is_empty());
        while let Some(mut held) = scan.step().await? {
            held.retain(|(key, _)| pattern.matches(key.as_str()));
            if !is_narrow {
                held = self.without_other_data(held).await?;
            }
            found.extend(held);
            // The keys arrive in no order, so the first ones are known only at the end.
            while found.len() > limit {
                found.pop_last();
                more = true;
            }
        }
        let found: Vec<_> = found.into_iter().collect();
        let mut locks = Vec::with_capacity(found.len());
        for part in found.chunks(AT_ONCE) {
            locks.extend(self.details(part).await?);
        }
        Ok(LockListing::new(locks, more))
    }

    /// Returns the first `limit` keys by name that match and have a record.
    pub(crate) async fn list_records(
        &self,
        pattern: &Pattern,
        limit: usize,
    ) -> Result<Vec<Key>, Error> {
        let prefix = &*self.url().prefix;
        let names = format!(
            "leasehold:record:{{*}}:{}*",
            escaped(&format!("{prefix}{}", pattern.prefix()))
        );
        let mut scan = Scan::of(self, names, "hash");
        let mut found = BTreeSet::new();
        while let Some(names) = scan.keys().await? {
            let keys = names
                .iter()
                .filter_map(|name| Names::key_of_record(prefix, name));
            found.extend(keys.filter(|key| pattern.matches(key.as_str())));
            while found.len() > limit {
                found.pop_last();
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Keeps the locks that this library wrote or that have a fence counter.
    async fn without_other_data(
        &self,
        found: Vec<(Key, HeldKey)>,
    ) -> Result<Vec<(Key, HeldKey)>, Error> {
        let answers = self
            .inspect(false, |out| {
                for (key, _) in found.iter().filter(|(_, found)| found.is_foreign()) {
                    out.command("EXISTS").arg(self.names(key).record("fence:0"));
                }
            })
            .await?;
        let mut counters = answers.iter().map(|answer| answer.as_integer() == Some(1));
        let is_lock = |(_, found): &(Key, HeldKey)| {
            !found.is_foreign() || counters.next().unwrap_or_default()
        };
        Ok(found.into_iter().filter(is_lock).collect())
    }

    /// Adds the holders of each lock, and leaves out locks that have become free.
    async fn details(&self, found: &[(Key, HeldKey)]) -> Result<Vec<ListedLock>, Error> {
        let answers = self
            .inspect(true, |out| {
                out.command("TIME");
                for (key, found) in found {
                    self.ask_details(key, &found.value, out);
                }
            })
            .await?;
        let [time, answers @ ..] = answers.as_slice() else {
            return Err(self.invalid_response("TIME"));
        };
        let now = read_time(time).ok_or_else(|| self.invalid_response("TIME"))?;
        let mut answers = answers.iter();
        let mut all = Vec::with_capacity(found.len());
        for (key, HeldKey { value, form }) in found {
            let mut next = || answers.next().ok_or_else(|| self.invalid_response("PTTL"));
            let holders = match value {
                LockValue::Owner(owner) | LockValue::Broken(owner) => {
                    let (left, note) = (next()?.as_integer(), next()?);
                    let is_broken = matches!(value, LockValue::Broken(_));
                    let of = |left| exclusive(*owner, is_broken, remaining(left), Some(note));
                    held_by(left, of)
                }
                LockValue::Foreign | LockValue::OtherType(_) | LockValue::Next => {
                    let left = next()?.as_integer();
                    held_by(left, |left| foreign(*form, remaining(left)))
                }
                LockValue::Shared | LockValue::Permits(_) => {
                    let mode = match value {
                        LockValue::Permits(permits) => Mode::Permit(*permits),
                        _ => Mode::Shared,
                    };
                    let together: Vec<Value> = answers.by_ref().take(TOGETHER).cloned().collect();
                    read_together(&together, mode, now).unwrap_or_default()
                }
            };
            if !holders.is_empty() {
                all.push((key.clone(), holders));
            }
        }
        self.name(all.iter_mut().flat_map(|(_, holders)| holders))
            .await?;
        let locks = all.into_iter();
        Ok(locks
            .map(|(key, holders)| ListedLock::new(key, holders))
            .collect())
    }

    fn ask_details(&self, key: &Key, value: &LockValue, out: &mut CommandWriter<'_>) {
        let names = self.names(key);
        match value {
            LockValue::Owner(owner) | LockValue::Broken(owner) => {
                out.command("PTTL").arg(names.lock());
                ask_note(&names, *owner, out);
            }
            LockValue::Foreign | LockValue::OtherType(_) | LockValue::Next => {
                out.command("PTTL").arg(names.lock());
            }
            LockValue::Shared | LockValue::Permits(_) => ask_together(&names, SHOWN_MAX, out),
        }
    }

    /// Returns those of `keys` that are or may be held locks.
    async fn held(&self, keys: &[&str]) -> Result<Vec<(Key, HeldKey)>, Error> {
        let answers = self
            .inspect(false, |out| {
                for keys in keys.chunks(VALUES_AT_ONCE) {
                    out.command("MGET");
                    for key in keys {
                        out.arg(key);
                    }
                }
            })
            .await?;
        let mut held = Vec::new();
        for (keys, answer) in keys.chunks(VALUES_AT_ONCE).zip(&answers) {
            let values = answer
                .as_array()
                .ok_or_else(|| self.invalid_response("MGET"))?;
            let locks = keys.iter().zip(values).filter_map(|(key, value)| {
                let value = value.as_bytes()?;
                let found = HeldKey {
                    value: LockValue::read(value),
                    form: Form::of(value),
                };
                let is_record = found.is_foreign() && key.starts_with("leasehold:");
                if is_record || found.value == LockValue::Next {
                    return None;
                }
                let name = key.strip_prefix(&*self.url().prefix)?;
                Some((Key::new(name).ok()?, found))
            });
            held.extend(locks);
        }
        Ok(held)
    }
}

fn held_by(left: Option<i64>, holder: impl FnOnce(i64) -> Holder) -> Vec<Holder> {
    match left {
        Some(left) if left != GONE => vec![holder(left)],
        _ => Vec::new(),
    }
}

/// A scan of all keys of a server. Each step takes the server little time, however many keys it has.
struct Scan<'a> {
    server: &'a Server,
    pattern: String,
    /// The type of its keys, as Redis calls it.
    kind: &'static str,
    /// The cursor of the next step; `None` at the end.
    cursor: Option<String>,
}

impl<'a> Scan<'a> {
    fn new(server: &'a Server, prefix: &str) -> Self {
        let prefix = format!("{}{prefix}", server.url().prefix);
        Self::of(server, format!("{}*", escaped(&prefix)), "string")
    }

    fn of(server: &'a Server, pattern: String, kind: &'static str) -> Self {
        Self {
            server,
            pattern,
            kind,
            cursor: Some("0".to_owned()),
        }
    }

    /// Returns the next strings that may be locks; `None` at the end.
    async fn step(&mut self) -> Result<Option<Vec<(Key, HeldKey)>>, Error> {
        let Some(keys) = self.keys().await? else {
            return Ok(None);
        };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.server.held(&keys).await.map(Some)
    }

    /// Returns the next keys that match; `None` at the end.
    async fn keys(&mut self) -> Result<Option<Vec<String>>, Error> {
        let Some(cursor) = self.cursor.take() else {
            return Ok(None);
        };
        let answers = self
            .server
            .inspect(false, |out| {
                out.command("SCAN").arg(&cursor);
                out.arg("MATCH").arg(&self.pattern);
                out.arg("COUNT").number(SCAN_STEP);
                out.arg("TYPE").arg(self.kind);
            })
            .await?;
        let Some([next, Value::Array(keys)]) = answers.first().and_then(Value::as_array) else {
            return Err(self.server.invalid_response("SCAN"));
        };
        let next = next
            .as_text()
            .ok_or_else(|| self.server.invalid_response("SCAN"))?;
        self.cursor = (next != "0").then(|| next.to_owned());
        let keys = keys.iter().filter_map(Value::as_text);
        Ok(Some(keys.map(str::to_owned).collect()))
    }
}

/// Returns a glob pattern that matches `text` alone.
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
    fn prefix_is_taken_literally() {
        assert_eq!(escaped("a*b?[c]\\^-"), r"a\*b\?\[c\]\\\^\-");
        assert_eq!(escaped("Ключ{x}"), "Ключ{x}");
    }
}
