use crate::core::Core;
use crate::failure::SYNTAX;
use crate::glob;
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::words::is;

pub(super) fn del(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let removed = args[1..].iter().filter(|key| core.keyspace.remove(key));
    Ok(Reply::count(removed.count()))
}

pub(super) fn exists(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let found = args[1..].iter();
    let found = found.filter(|key| core.keyspace.find(key).is_some());
    Ok(Reply::count(found.count()))
}

pub(super) fn type_of(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let entry = core.keyspace.find(args[1]);
    let name = entry.map_or("none", |entry| entry.value.type_name());
    Ok(Reply::Simple(name.into()))
}

pub(super) fn dbsize(core: &mut Core, _args: &[&[u8]]) -> Outcome {
    Ok(Reply::count(core.keyspace.iter().count()))
}

pub(super) fn flush(core: &mut Core, args: &[&[u8]]) -> Outcome {
    match args[1..] {
        [] => {}
        [mode] if is(mode, "SYNC") || is(mode, "ASYNC") => {}
        _ => return Err(SYNTAX),
    }
    core.keyspace.clear();
    Ok(Reply::OK)
}

/// Visits keys in the order of their hashes. The cursor is the next hash.
///
/// So a scan finds every key that exists from its start to its end, as Redis promises.
pub(super) fn scan(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let cursor = str::from_utf8(args[1])
        .ok()
        .and_then(|text| text.parse().ok());
    let cursor: u64 = cursor.ok_or("ERR invalid cursor")?;
    let (mut pattern, mut count, mut kind) = (None, 10, None);
    let mut options = args[2..].chunks_exact(2);
    for option in &mut options {
        if is(option[0], "MATCH") {
            pattern = Some(option[1]);
        } else if is(option[0], "COUNT") {
            let number = usize::try_from(number::integer(option[1])?);
            count = number.ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
        } else if is(option[0], "TYPE") {
            kind = Some(option[1]);
        } else {
            return Err(SYNTAX);
        }
    }
    if !options.remainder().is_empty() {
        return Err(SYNTAX);
    }
    let keys = core.keyspace.iter();
    let mut found: Vec<_> = keys.map(|(key, entry)| (hash(key), key, entry)).collect();
    found.retain(|(hash, ..)| *hash >= cursor);
    found.sort_unstable_by_key(|(hash, key, _)| (*hash, *key));
    let mut end = count.min(found.len());
    while end < found.len() && found[end].0 == found[end - 1].0 {
        end += 1;
    }
    let next = found.get(end).map_or(0, |(hash, ..)| *hash);
    let is_meant = |name: &[u8], type_name: &str| {
        pattern.is_none_or(|pattern| glob::matches(pattern, name))
            && kind.is_none_or(|kind| is(kind, &type_name.to_ascii_uppercase()))
    };
    let keys = found[..end].iter();
    let keys = keys.filter(|(_, key, entry)| is_meant(key, entry.value.type_name()));
    let keys = keys.map(|(_, key, _)| Reply::bulk(key)).collect();
    Ok(Reply::Array(vec![
        Reply::bulk(next.to_string()),
        Reply::Array(keys),
    ]))
}

/// FNV-1a. The result is never 0, which is the cursor at the start and the end of a scan.
fn hash(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    key.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}
