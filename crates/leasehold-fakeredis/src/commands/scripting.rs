use std::sync::Arc;

use super::server::unknown_subcommand;
use crate::core::Core;
use crate::failure::{Failure, SYNTAX, wrong_number};
use crate::lua;
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::words::is;

pub(super) fn eval(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (keys, argv) = split(args)?;
    let sha = load(core, args[1])?;
    lua::run(core, &sha, keys, argv)
}

pub(super) fn evalsha(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let (keys, argv) = split(args)?;
    let no_script = Failure::from("NOSCRIPT No matching script. Please use EVAL.");
    if core.scripts.contains_key(args[1]) {
        return lua::run(core, args[1], keys, argv);
    }
    let sha = args[1].to_ascii_lowercase();
    if core.scripts.contains_key(&sha) {
        return lua::run(core, &sha, keys, argv);
    }
    Err(no_script)
}

type Words<'a> = &'a [&'a [u8]];

/// The keys and the other arguments of `EVAL`.
fn split<'a>(args: Words<'a>) -> Result<(Words<'a>, Words<'a>), Failure> {
    let count = number::integer(args[2])?;
    let count = usize::try_from(count);
    let count = count.map_err(|_| Failure::from("ERR Number of keys can't be negative"))?;
    let too_many = "ERR Number of keys can't be greater than number of args";
    args[3..].split_at_checked(count).ok_or(too_many.into())
}

/// Stores a script. Returns the name under which it is stored.
fn load(core: &mut Core, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let sha = sha1_smol::Sha1::from(text)
        .digest()
        .to_string()
        .into_bytes();
    if !core.scripts.contains_key(&sha) {
        lua::compile(&sha, text)?;
        core.scripts.insert(sha.clone(), Arc::from(text));
    }
    Ok(sha)
}

pub(super) fn script(core: &mut Core, args: &[&[u8]]) -> Outcome {
    match args[1..] {
        [subcommand, text] if is(subcommand, "LOAD") => Ok(Reply::Bulk(load(core, text)?)),
        [subcommand, ref shas @ ..] if is(subcommand, "EXISTS") && !shas.is_empty() => {
            let is_kept = |sha: &&[u8]| {
                let sha = sha.to_ascii_lowercase();
                Reply::flag(core.scripts.contains_key(&sha))
            };
            Ok(Reply::Array(shas.iter().map(is_kept).collect()))
        }
        [subcommand] if is(subcommand, "FLUSH") => {
            core.scripts.clear();
            Ok(Reply::OK)
        }
        [subcommand, mode] if is(subcommand, "FLUSH") => {
            if !is(mode, "SYNC") && !is(mode, "ASYNC") {
                return Err(SYNTAX);
            }
            core.scripts.clear();
            Ok(Reply::OK)
        }
        [subcommand, ..] if is(subcommand, "LOAD") => Err(wrong_number("script|load")),
        [subcommand, ..] => Err(unknown_subcommand("SCRIPT", subcommand)),
        [] => Err(wrong_number("script")),
    }
}
