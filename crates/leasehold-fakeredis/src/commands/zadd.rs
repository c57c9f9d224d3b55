use crate::core::Core;
use crate::failure::{Failure, SYNTAX};
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::sorted_set::SortedSet;
use crate::words::is;

#[derive(Default)]
struct Options {
    only_new: bool,
    only_old: bool,
    greater: bool,
    less: bool,
    changed: bool,
    increment: bool,
}

impl Options {
    /// Reads the options. Returns the scores and members after them.
    fn read<'a>(mut words: &'a [&'a [u8]]) -> Result<(Self, &'a [&'a [u8]]), Failure> {
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            let option = [
                ("NX", &mut options.only_new),
                ("XX", &mut options.only_old),
                ("GT", &mut options.greater),
                ("LT", &mut options.less),
                ("CH", &mut options.changed),
                ("INCR", &mut options.increment),
            ];
            let Some((_, is_set)) = option.into_iter().find(|(name, _)| is(word, name)) else {
                break;
            };
            *is_set = true;
            words = rest;
        }
        options.check(words.len())?;
        Ok((options, words))
    }

    fn check(&self, words: usize) -> Result<(), Failure> {
        if words == 0 || !words.is_multiple_of(2) {
            return Err(SYNTAX);
        }
        if self.only_new && self.only_old {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        let directions = [self.greater, self.less, self.only_new];
        if directions.into_iter().filter(|is_set| *is_set).count() > 1 {
            let text = "ERR GT, LT, and/or NX options at the same time are not compatible";
            return Err(text.into());
        }
        if self.increment && words > 2 {
            return Err("ERR INCR option supports a single increment-element pair".into());
        }
        Ok(())
    }
}

/// The effect on a member.
#[derive(PartialEq)]
enum Change {
    Added,
    Updated,
    Same,
    Refused,
}

pub(super) fn zadd(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (options, entries) = Options::read(&args[2..])?;
    let (entries, _) = entries.as_chunks::<2>();
    add(core, args[1], &options, entries)
}

pub(super) fn zincrby(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let options = Options {
        increment: true,
        ..Options::default()
    };
    add(core, args[1], &options, &[[args[2], args[3]]])
}

fn add(core: &mut Core, key: &[u8], options: &Options, entries: &[[&[u8]; 2]]) -> Outcome {
    for [score, _] in entries {
        number::float(score)?;
    }
    let old = core.keyspace.get::<SortedSet>(key)?;
    if old.is_none() && options.only_old {
        return Ok(if options.increment {
            Reply::Nil
        } else {
            Reply::Integer(0)
        });
    }
    let set = core.keyspace.get_or_new::<SortedSet>(key)?;
    let (mut added, mut updated) = (0, 0);
    for [score, member] in entries {
        let (change, score) = add_one(set, options, number::float(score)?, member)?;
        added += i64::from(change == Change::Added);
        updated += i64::from(change == Change::Updated);
        if options.increment {
            return Ok(match change {
                Change::Refused => Reply::Nil,
                _ => Reply::Double(score),
            });
        }
    }
    Ok(Reply::Integer(if options.changed {
        added + updated
    } else {
        added
    }))
}

fn add_one(
    set: &mut SortedSet,
    options: &Options,
    score: f64,
    member: &[u8],
) -> Result<(Change, f64), Failure> {
    let Some(old) = set.score(member) else {
        if options.only_old {
            return Ok((Change::Refused, score));
        }
        set.insert(score, member);
        return Ok((Change::Added, score));
    };
    if options.only_new {
        return Ok((Change::Refused, old));
    }
    let score = if options.increment {
        old + score
    } else {
        score
    };
    if score.is_nan() {
        return Err("ERR resulting score is not a number (NaN)".into());
    }
    if (options.greater && score <= old) || (options.less && score >= old) {
        return Ok((Change::Refused, old));
    }
    if score == old {
        return Ok((Change::Same, old));
    }
    set.insert(score, member);
    Ok((Change::Updated, score))
}
