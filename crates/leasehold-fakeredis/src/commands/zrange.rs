use std::ops::Range;

use super::sorted_sets::scored;
use crate::core::Core;
use crate::failure::{Failure, SYNTAX};
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::sorted_set::{ScoreRange, SortedSet};
use crate::words::is;

#[derive(Default)]
struct Options {
    by_score: bool,
    reverse: bool,
    limit: Option<(i64, i64)>,
    with_scores: bool,
}

impl Options {
    fn read(mut words: &[&[u8]], by_score: bool) -> Result<Self, Failure> {
        let is_zrange = !by_score;
        let mut options = Self {
            by_score,
            ..Self::default()
        };
        while let [word, rest @ ..] = words {
            words = rest;
            if is(word, "WITHSCORES") {
                options.with_scores = true;
            } else if is_zrange && !options.reverse && is(word, "REV") {
                options.reverse = true;
            } else if !options.by_score && is(word, "BYSCORE") {
                options.by_score = true;
            } else if let (true, [offset, count, rest @ ..]) = (is(word, "LIMIT"), rest) {
                options.limit = Some((number::integer(offset)?, number::integer(count)?));
                words = rest;
            } else {
                return Err(SYNTAX);
            }
        }
        if options.limit.is_some() && !options.by_score {
            let text = "ERR syntax error, LIMIT is only supported in combination with either \
                        BYSCORE or BYLEX";
            return Err(text.into());
        }
        Ok(options)
    }
}

pub(super) fn zrange(core: &mut Core, args: &[&[u8]]) -> Outcome {
    range(core, args, &Options::read(&args[4..], false)?)
}

pub(super) fn zrangebyscore(core: &mut Core, args: &[&[u8]]) -> Outcome {
    range(core, args, &Options::read(&args[4..], true)?)
}

fn range(core: &mut Core, args: &[&[u8]], options: &Options) -> Outcome {
    let (first, last) = (args[2], args[3]);
    if !options.by_score {
        let (start, stop) = (number::integer(first)?, number::integer(last)?);
        return select(core, args[1], options, |set| {
            let ranks = number::ranks(start, stop, set.len());
            match options.reverse {
                true => set.len() - ranks.end..set.len() - ranks.start,
                false => ranks,
            }
        });
    }
    let scores = match options.reverse {
        true => ScoreRange::read(last, first)?,
        false => ScoreRange::read(first, last)?,
    };
    select(core, args[1], options, |set| set.ranks_by_score(&scores))
}

fn select(
    core: &mut Core,
    key: &[u8],
    options: &Options,
    ranks: impl FnOnce(&SortedSet) -> Range<usize>,
) -> Outcome {
    let in_pairs = core.is_resp3();
    let Some(set) = core.keyspace.get::<SortedSet>(key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let ranks = ranks(set);
    let (offset, count) = options.limit.unwrap_or((0, -1));
    // A negative count means no limit; a negative offset finds nothing.
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries = &set.entries()[ranks];
    let chosen: Vec<_> = match options.reverse {
        true => entries.iter().rev().skip(offset).take(count).collect(),
        false => entries.iter().skip(offset).take(count).collect(),
    };
    if options.with_scores {
        return Ok(scored(chosen, in_pairs));
    }
    let members = chosen.into_iter().map(|(_, member)| Reply::bulk(member));
    Ok(Reply::Array(members.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_indices_count_from_the_end() {
        assert_eq!(number::ranks(-2, -1, 4), 2..4);
        assert_eq!(number::ranks(0, -10, 4), 0..0);
        assert_eq!(number::ranks(-10, 10, 4), 0..4);
        assert_eq!(number::ranks(0, i64::MAX, 4), 0..4);
        assert_eq!(number::ranks(i64::MIN, i64::MIN, 4), 0..0);
    }
}
