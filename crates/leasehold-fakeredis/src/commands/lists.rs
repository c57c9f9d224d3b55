//! Just enough of lists for tests to put a value of another type under a key.

use crate::core::Core;
use crate::number;
use crate::reply::{Outcome, Reply};

pub(super) fn rpush(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let list = core.keyspace.get_or_new::<Vec<Vec<u8>>>(args[1])?;
    list.extend(args[2..].iter().map(|item| item.to_vec()));
    Ok(Reply::count(list.len()))
}

pub(super) fn llen(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let list = core.keyspace.get::<Vec<Vec<u8>>>(args[1])?;
    Ok(Reply::count(list.map_or(0, |list| list.len())))
}

pub(super) fn lrange(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (start, stop) = (number::integer(args[2])?, number::integer(args[3])?);
    let Some(list) = core.keyspace.get::<Vec<Vec<u8>>>(args[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let ranks = number::ranks(start, stop, list.len());
    Ok(Reply::Array(list[ranks].iter().map(Reply::bulk).collect()))
}
