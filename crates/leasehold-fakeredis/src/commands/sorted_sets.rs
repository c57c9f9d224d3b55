use crate::core::Core;
use crate::failure::{Failure, SYNTAX};
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::sorted_set::{ScoreRange, SortedSet};

fn get<'a>(core: &'a mut Core, key: &[u8]) -> Result<Option<&'a mut SortedSet>, Failure> {
    core.keyspace.get(key)
}

fn double_or_nil(score: Option<f64>) -> Reply {
    score.map_or(Reply::Nil, Reply::Double)
}

pub(super) fn zcard(core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::count(get(core, args[1])?.map_or(0, |set| set.len())))
}

pub(super) fn zscore(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let set = get(core, args[1])?;
    Ok(double_or_nil(set.and_then(|set| set.score(args[2]))))
}

pub(super) fn zmscore(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let set = get(core, args[1])?.map(|set| &*set);
    let score = |member: &&[u8]| double_or_nil(set.and_then(|set| set.score(member)));
    Ok(Reply::Array(args[2..].iter().map(score).collect()))
}

pub(super) fn zrank(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let rank = get(core, args[1])?.and_then(|set| set.rank(args[2]));
    Ok(rank.map_or(Reply::Nil, Reply::count))
}

pub(super) fn zrevrank(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let rank = get(core, args[1])?.and_then(|set| Some(set.len() - 1 - set.rank(args[2])?));
    Ok(rank.map_or(Reply::Nil, Reply::count))
}

pub(super) fn zcount(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let scores = ScoreRange::read(args[2], args[3])?;
    let set = get(core, args[1])?;
    Ok(Reply::count(
        set.map_or(0, |set| set.ranks_by_score(&scores).len()),
    ))
}

pub(super) fn zrem(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let Some(set) = get(core, args[1])? else {
        return Ok(Reply::Integer(0));
    };
    let removed = args[2..].iter().filter(|member| set.remove(member)).count();
    core.keyspace.remove_if_empty(args[1]);
    Ok(Reply::count(removed))
}

pub(super) fn zremrangebyrank(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (start, stop) = (number::integer(args[2])?, number::integer(args[3])?);
    let set = get(core, args[1])?;
    let removed = set.map_or(0, |set| {
        set.remove_range(number::ranks(start, stop, set.len()))
            .len()
    });
    core.keyspace.remove_if_empty(args[1]);
    Ok(Reply::count(removed))
}

pub(super) fn zremrangebyscore(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let scores = ScoreRange::read(args[2], args[3])?;
    let set = get(core, args[1])?;
    let removed = set.map_or(0, |set| set.remove_range(set.ranks_by_score(&scores)).len());
    core.keyspace.remove_if_empty(args[1]);
    Ok(Reply::count(removed))
}

pub(super) fn zpopmin(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let count = match args[2..] {
        [] => None,
        [count] => {
            let count = number::integer(count)
                .ok()
                .and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or("ERR value is out of range, must be positive")?)
        }
        _ => return Err(SYNTAX),
    };
    let in_pairs = count.is_some() && core.is_resp3();
    let Some(set) = get(core, args[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let popped = set.remove_range(0..count.unwrap_or(1).min(set.len()));
    core.keyspace.remove_if_empty(args[1]);
    Ok(scored(&popped, in_pairs))
}

/// Returns members with their scores, either each pair in a list of its own or all in one list.
pub(super) fn scored<'a>(
    entries: impl IntoIterator<Item = &'a (f64, Vec<u8>)>,
    in_pairs: bool,
) -> Reply {
    let entries = entries.into_iter();
    let parts = entries.map(|(score, member)| [Reply::bulk(member), Reply::Double(*score)]);
    if in_pairs {
        return Reply::Array(parts.map(|pair| Reply::Array(pair.into())).collect());
    }
    Reply::Array(parts.flatten().collect())
}
