use crate::core::Core;
use crate::failure::Failure;
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::words::is;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Base {
    Now,
    Epoch,
}

/// Converts a time to an instant in milliseconds, unless it is out of range.
pub(super) fn instant(core: &Core, time: i64, unit: Unit, base: Base) -> Option<i64> {
    let time = match unit {
        Unit::Seconds => time.checked_mul(1000)?,
        Unit::Milliseconds => time,
    };
    match base {
        Base::Now => time.checked_add(core.keyspace.now_ms),
        Base::Epoch => Some(time),
    }
}

#[derive(Default)]
struct Conditions {
    none: bool,
    some: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn read(words: &[&[u8]]) -> Result<Self, Failure> {
        let mut conditions = Self::default();
        for word in words {
            if is(word, "NX") {
                conditions.none = true;
            } else if is(word, "XX") {
                conditions.some = true;
            } else if is(word, "GT") {
                conditions.later = true;
            } else if is(word, "LT") {
                conditions.earlier = true;
            } else {
                let word = String::from_utf8_lossy(word);
                return Err(format!("ERR Unsupported option {word}").into());
            }
        }
        if conditions.none && (conditions.some || conditions.later || conditions.earlier) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(text.into());
        }
        if conditions.later && conditions.earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(conditions)
    }

    /// Whether the new expiry may replace the old one. A key without an expiry lives forever.
    fn allow(&self, old: Option<i64>, new: i64) -> bool {
        let is_refused = (self.none && old.is_some())
            || (self.some && old.is_none())
            || (self.later && old.is_none_or(|old| new <= old))
            || (self.earlier && old.is_some_and(|old| new >= old));
        !is_refused
    }
}

pub(super) fn expire(core: &mut Core, args: &[&[u8]]) -> Outcome {
    set_expiry(core, args, "expire", Unit::Seconds, Base::Now)
}

pub(super) fn pexpire(core: &mut Core, args: &[&[u8]]) -> Outcome {
    set_expiry(core, args, "pexpire", Unit::Milliseconds, Base::Now)
}

pub(super) fn pexpireat(core: &mut Core, args: &[&[u8]]) -> Outcome {
    set_expiry(core, args, "pexpireat", Unit::Milliseconds, Base::Epoch)
}

fn set_expiry(core: &mut Core, args: &[&[u8]], name: &str, unit: Unit, base: Base) -> Outcome {
    let conditions = Conditions::read(&args[3..])?;
    let time = number::integer(args[2])?;
    let invalid = || Failure::from(format!("ERR invalid expire time in '{name}' command"));
    let new = instant(core, time, unit, base).ok_or_else(invalid)?;
    let now_ms = core.keyspace.now_ms;
    let Some(entry) = core.keyspace.find(args[1]) else {
        return Ok(Reply::Integer(0));
    };
    if !conditions.allow(entry.expires_ms, new) {
        return Ok(Reply::Integer(0));
    }
    entry.expires_ms = Some(new);
    if new <= now_ms {
        core.keyspace.remove(args[1]);
    }
    Ok(Reply::Integer(1))
}

pub(super) fn persist(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let entry = core.keyspace.find(args[1]);
    let old = entry.and_then(|entry| entry.expires_ms.take());
    Ok(Reply::flag(old.is_some()))
}

pub(super) fn pttl(core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::Integer(left(core, args[1])))
}

pub(super) fn ttl(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let left = left(core, args[1]);
    Ok(Reply::Integer(if left < 0 {
        left
    } else {
        (left + 500) / 1000
    }))
}

/// Returns the milliseconds until a key expires: -1 if it does not expire, -2 if there is no key.
fn left(core: &mut Core, key: &[u8]) -> i64 {
    let now_ms = core.keyspace.now_ms;
    match core.keyspace.find(key) {
        None => -2,
        Some(entry) => entry.expires_ms.map_or(-1, |at| (at - now_ms).max(0)),
    }
}
