use leasehold_redis::{RedisMember, RedisStore};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::json;

use crate::commands::members::args::{MembersArgs, MembersChange};
use crate::commands::members::ask_members::{ask_members, stated_set};
use crate::commands::members::servers::{Servers, place_of, wait_after_change, without_login};
use crate::output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::time_text::{millis, whole_seconds};
use crate::runtime::runtime;

/// Moves a server to another address, and prints the new list.
pub(super) fn replace(
    args: &MembersArgs,
    servers: &Servers,
    change: &MembersChange,
    quorum: &RedisStore,
) -> Result<ExitCode, Failure> {
    let MembersChange::Replace {
        old,
        new,
        gone,
        dry_run,
    } = change
    else {
        return Err(Failure::usage("not a replacement"));
    };
    let place = place_of(servers, old, quorum)?;
    let former = &quorum.members()[place];
    let mut urls = servers.urls().to_vec();
    urls[place] = with_id(new, former)?;
    let next = RedisStore::new(&urls)?;
    let seen = runtime()?.block_on(ask_members(quorum.members()));
    if !dry_run {
        let replaced = runtime()?.block_on(next.replace(former, *gone));
        replaced.map_err(|error| {
            let failure = Failure::from(error);
            match gone {
                true => failure,
                false => Failure::new(
                    failure.code,
                    format!(
                        "{failure}. If {} is stopped for good, add --gone",
                        former.id()
                    ),
                ),
            }
        })?;
    }
    let (id, wait) = (former.id(), wait_after_change(&stated_set(quorum, &seen)));
    let shown: Vec<_> = urls.iter().map(|url| without_login(url)).collect();
    let printed = if args.json {
        output::print_json(&json!({
            "dry_run": dry_run,
            "member": id.as_str(),
            "store": shown,
            "no_vote_for_ms": millis(wait),
        }))
    } else {
        let (is, has) = match dry_run {
            true => ("would be", "would have"),
            false => ("is", "has"),
        };
        output::print(&format!(
            "{id} {is} at {}, and {has} no vote for {}\n\
             Configure all clients with the new list, in any order: --store {}\n\
             Until all clients have it, start no server at the old address, not even an empty one: \
             it would get a vote again, and two clients could hold the same lock.\n",
            shown[place],
            whole_seconds(wait),
            shown.join(",")
        ))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// What has a meaning in the query of a URL, or in a list of URLs.
const SPECIAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b',');

/// Returns the URL with the id of the member that it replaces.
fn with_id(url: &str, former: &RedisMember) -> Result<String, Failure> {
    let (id, new) = (former.id(), RedisMember::new(url)?);
    if new.id() == id {
        return Ok(url.to_owned());
    }
    let (_, query) = url.split_once('?').unwrap_or((url, ""));
    if query.split('&').any(|pair| pair.starts_with("id=")) {
        return Err(Failure::usage(format!(
            "{} has the id {}, and it replaces {id}; leave the id out",
            without_login(url),
            new.id()
        )));
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    let id = utf8_percent_encode(id.as_str(), SPECIAL);
    Ok(format!("{url}{joint}id={id}"))
}
