use crate::core::Core;
use crate::failure::{Failure, SYNTAX, wrong_number};
use crate::glob;
use crate::identity::VERSION;
use crate::number;
use crate::reply::{Outcome, Reply};
use crate::words::is;

pub(super) fn ping(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let caller = core.clients.of(core.caller);
    let is_subscribed = !caller.is_resp3 && !caller.channels.is_empty();
    match args[1..] {
        [] if is_subscribed => Ok(Reply::Array(["pong", ""].map(Reply::bulk).into())),
        [] => Ok(Reply::Simple("PONG".into())),
        [text] if is_subscribed => Ok(Reply::Array(vec![Reply::bulk("pong"), Reply::bulk(text)])),
        [text] => Ok(Reply::bulk(text)),
        _ => Err(wrong_number("ping")),
    }
}

pub(super) fn echo(_core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::bulk(args[1]))
}

pub(super) fn time(core: &mut Core, _args: &[&[u8]]) -> Outcome {
    let parts = [core.now_us / 1_000_000, core.now_us % 1_000_000];
    let parts = parts.map(|part| Reply::Bulk(part.to_string().into_bytes()));
    Ok(Reply::Array(parts.into()))
}

/// Accepts every user and password.
pub(super) fn auth(_core: &mut Core, args: &[&[u8]]) -> Outcome {
    if args.len() > 3 {
        return Err(SYNTAX);
    }
    Ok(Reply::OK)
}

pub(super) fn select(_core: &mut Core, args: &[&[u8]]) -> Outcome {
    match number::integer(args[1])? {
        0 => Ok(Reply::OK),
        _ => Err("ERR DB index is out of range".into()),
    }
}

pub(super) fn hello(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let unsupported = "NOPROTO unsupported protocol version";
    let is_resp3 = match args.get(1).map(|version| number::integer(version)) {
        None => core.clients.of(core.caller).is_resp3,
        Some(Ok(2)) => false,
        Some(Ok(3)) => true,
        Some(Ok(_)) => return Err(unsupported.into()),
        Some(Err(_)) => {
            return Err("ERR Protocol version is not an integer or out of range".into());
        }
    };
    let mut options = args.get(2..).unwrap_or_default();
    while let [option, rest @ ..] = options {
        options = match rest {
            [_, _, rest @ ..] if is(option, "AUTH") => rest,
            [_, rest @ ..] if is(option, "SETNAME") => rest,
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(format!("ERR Syntax error in HELLO option '{option}'").into());
            }
        };
    }
    core.clients.of(core.caller).is_resp3 = is_resp3;
    let fields = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(VERSION)),
        ("proto", Reply::Integer(if is_resp3 { 3 } else { 2 })),
        ("id", Reply::Integer(core.caller.0 as i64)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(Vec::new())),
    ];
    let fields = fields.map(|(name, value)| (Reply::bulk(name), value));
    Ok(Reply::Map(fields.into()))
}

pub(super) fn client(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let subcommand = args[1];
    let (name, words) = ["SETNAME", "SETINFO", "ID", "GETNAME", "NO-EVICT"]
        .into_iter()
        .zip([3, 4, 2, 2, 3])
        .find(|(name, _)| is(subcommand, name))
        .ok_or_else(|| unknown_subcommand("CLIENT", subcommand))?;
    if args.len() != words {
        let name = format!("client|{}", name.to_ascii_lowercase());
        return Err(wrong_number(&name));
    }
    Ok(match name {
        "ID" => Reply::Integer(core.caller.0 as i64),
        "GETNAME" => Reply::Nil,
        _ => Reply::OK,
    })
}

pub(super) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Failure {
    let subcommand = String::from_utf8_lossy(subcommand);
    format!("ERR unknown subcommand '{subcommand}'. Try {command} HELP.").into()
}

pub(super) fn info(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let section = args.get(1).map(|section| String::from_utf8_lossy(section));
    let everything = ["default", "all", "everything"];
    let section = section
        .as_deref()
        .filter(|section| !everything.contains(section));
    Ok(Reply::bulk(core.identity.info(section, core.now_us)))
}

pub(super) fn config(core: &mut Core, args: &[&[u8]]) -> Outcome {
    match args[1..] {
        [subcommand, ref patterns @ ..] if is(subcommand, "GET") && !patterns.is_empty() => {
            let settings = core.identity.settings().into_iter();
            let is_asked = |name: &str| {
                let mut patterns = patterns.iter();
                patterns.any(|pattern| glob::matches(pattern, name.as_bytes()))
            };
            let found = settings.filter(|(name, _)| is_asked(name));
            let found = found.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value)));
            Ok(Reply::Map(found.collect()))
        }
        [subcommand, name, value] if is(subcommand, "SET") => {
            let [name, value] = [name, value].map(|text| String::from_utf8_lossy(text));
            core.identity.set(&name, &value);
            Ok(Reply::OK)
        }
        [subcommand, ..] => Err(unknown_subcommand("CONFIG", subcommand)),
        [] => Err(wrong_number("config")),
    }
}
