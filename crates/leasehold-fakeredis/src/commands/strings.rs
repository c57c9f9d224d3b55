use super::expiry::{Base, Unit, instant};
use crate::core::Core;
use crate::failure::{Failure, SYNTAX};
use crate::keyspace::Value;
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::words::is;

pub(super) fn get(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let value = core.keyspace.get::<Vec<u8>>(args[1])?;
    Ok(Reply::bulk_or_nil(value))
}

#[derive(Default)]
struct SetOptions<'a> {
    only_new: bool,
    only_old: bool,
    get: bool,
    keep_ttl: bool,
    expiry: Option<(&'a [u8], Unit, Base)>,
}

impl<'a> SetOptions<'a> {
    fn read(mut words: &[&'a [u8]]) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            words = rest;
            let has_lifetime = options.keep_ttl || options.expiry.is_some();
            if is(word, "NX") && !options.only_old {
                options.only_new = true;
            } else if is(word, "XX") && !options.only_new {
                options.only_old = true;
            } else if is(word, "GET") {
                options.get = true;
            } else if is(word, "KEEPTTL") && options.expiry.is_none() {
                options.keep_ttl = true;
            } else if let (Some((unit, base)), false, [time, rest @ ..]) =
                (time_option(word), has_lifetime, rest)
            {
                options.expiry = Some((time, unit, base));
                words = rest;
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }
}

fn time_option(word: &[u8]) -> Option<(Unit, Base)> {
    let options = [
        ("EX", Unit::Seconds, Base::Now),
        ("PX", Unit::Milliseconds, Base::Now),
        ("EXAT", Unit::Seconds, Base::Epoch),
        ("PXAT", Unit::Milliseconds, Base::Epoch),
    ];
    let mut options = options.into_iter();
    let (_, unit, base) = options.find(|(name, ..)| is(word, name))?;
    Some((unit, base))
}

pub(super) fn set(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (key, value) = (args[1], args[2]);
    let options = SetOptions::read(&args[3..])?;
    let expires_ms = match options.expiry {
        Some((time, unit, base)) => {
            let time = number::integer(time)?;
            let invalid = || Failure::from("ERR invalid expire time in 'set' command");
            let time = Some(time).filter(|time| *time > 0).ok_or_else(invalid)?;
            Some(instant(core, time, unit, base).ok_or_else(invalid)?)
        }
        None => None,
    };
    let old = match options.get {
        true => get(core, args)?,
        false => Reply::Nil,
    };
    let entry = core.keyspace.find(key);
    let is_there = entry.is_some();
    if (options.only_new && is_there) || (options.only_old && !is_there) {
        return Ok(old);
    }
    let kept = entry.filter(|_| options.keep_ttl);
    let expires_ms = kept.map_or(expires_ms, |entry| entry.expires_ms);
    core.keyspace
        .set(key, Value::Text(value.to_vec()), expires_ms);
    Ok(if options.get { old } else { Reply::OK })
}

pub(super) fn incr(core: &mut Core, args: &[&[u8]]) -> Outcome {
    add(core, args[1], 1)
}

pub(super) fn incrby(core: &mut Core, args: &[&[u8]]) -> Outcome {
    add(core, args[1], number::integer(args[2])?)
}

fn add(core: &mut Core, key: &[u8], increment: i64) -> Outcome {
    let old = match core.keyspace.get::<Vec<u8>>(key)? {
        Some(text) => number::integer(text)?,
        None => 0,
    };
    let overflow = "ERR increment or decrement would overflow";
    let sum = old.checked_add(increment).ok_or(Failure::from(overflow))?;
    *core.keyspace.get_or_new::<Vec<u8>>(key)? = sum.to_string().into_bytes();
    Ok(Reply::Integer(sum))
}
