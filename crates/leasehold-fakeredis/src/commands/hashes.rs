use crate::core::Core;
use crate::failure::{Failure, wrong_number};
use crate::number;
use crate::reply::{Outcome, Reply};

type Hash = Vec<(Vec<u8>, Vec<u8>)>;

fn value<'a>(hash: Option<&'a Hash>, field: &[u8]) -> Option<&'a [u8]> {
    let (_, value) = hash?.iter().find(|(name, _)| name == field)?;
    Some(value)
}

fn get<'a>(core: &'a mut Core, key: &[u8]) -> Result<Option<&'a Hash>, Failure> {
    Ok(core.keyspace.get::<Hash>(key)?.map(|hash| &*hash))
}

/// Sets a field. Returns whether it is new.
fn set(hash: &mut Hash, field: &[u8], value: Vec<u8>) -> bool {
    match hash.iter_mut().find(|(name, _)| name == field) {
        Some((_, old)) => {
            *old = value;
            false
        }
        None => {
            hash.push((field.to_vec(), value));
            true
        }
    }
}

pub(super) fn hset(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (fields, []) = args[2..].as_chunks::<2>() else {
        return Err(wrong_number("hset"));
    };
    let hash = core.keyspace.get_or_new::<Hash>(args[1])?;
    let fields = fields.iter();
    let added = fields.filter(|[field, value]| set(hash, field, value.to_vec()));
    Ok(Reply::count(added.count()))
}

pub(super) fn hget(core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::bulk_or_nil(value(get(core, args[1])?, args[2])))
}

pub(super) fn hmget(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let hash = get(core, args[1])?;
    let fields = args[2..].iter();
    let values = fields.map(|field| Reply::bulk_or_nil(value(hash, field)));
    Ok(Reply::Array(values.collect()))
}

pub(super) fn hgetall(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let fields = get(core, args[1])?.into_iter().flatten();
    let fields = fields.map(|(field, value)| (Reply::bulk(field), Reply::bulk(value)));
    Ok(Reply::Map(fields.collect()))
}

pub(super) fn hexists(core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::flag(value(get(core, args[1])?, args[2]).is_some()))
}

pub(super) fn hlen(core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::count(get(core, args[1])?.map_or(0, Vec::len)))
}

pub(super) fn hdel(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let Some(hash) = core.keyspace.get::<Hash>(args[1])? else {
        return Ok(Reply::Integer(0));
    };
    let before = hash.len();
    hash.retain(|(name, _)| !args[2..].contains(&name.as_slice()));
    let removed = before - hash.len();
    core.keyspace.remove_if_empty(args[1]);
    Ok(Reply::count(removed))
}

pub(super) fn hincrby(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let increment = number::integer(args[3])?;
    let old = match value(get(core, args[1])?, args[2]) {
        Some(text) => {
            number::integer(text).map_err(|_| Failure::from("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let overflow = Failure::from("ERR increment or decrement would overflow");
    let sum = old.checked_add(increment).ok_or(overflow)?;
    let hash = core.keyspace.get_or_new::<Hash>(args[1])?;
    set(hash, args[2], sum.to_string().into_bytes());
    Ok(Reply::Integer(sum))
}
