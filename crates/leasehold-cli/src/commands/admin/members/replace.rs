use serde_json::json;

use crate::commands::admin::members::args::{MembersArgs, MembersChange};
use crate::commands::admin::members::ask_members::{ask_members, stated_set};
use crate::commands::admin::members::servers::{index_of, wait_after_change};
use crate::config;
use crate::output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::time_text::{millis, whole_seconds};
use crate::runtime::runtime;
use crate::store::Quorum;
use crate::store::address_text::without_login;

/// Moves a server to another address, and prints the new list.
pub(super) fn replace(
    args: &MembersArgs,
    quorum: &Quorum,
    change: &MembersChange,
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
    let index = index_of(quorum, old)?;
    let id = &quorum.ids()[index];
    let mut urls = quorum.urls().to_vec();
    let former = urls[index].clone();
    urls[index] = Quorum::with_id(&config::with_default_password(new)?, id)?;
    let next = Quorum::at(&urls)?;
    let seen = runtime()?.block_on(ask_members(quorum));
    if !dry_run {
        let replaced = runtime()?.block_on(next.replace(&former, *gone));
        replaced.map_err(|error| {
            let failure = Failure::from(error);
            match gone {
                true => failure,
                false => Failure::new(
                    failure.code,
                    format!("{failure}. If {id} is stopped for good, add --gone"),
                ),
            }
        })?;
    }
    let wait = wait_after_change(&stated_set(quorum, &seen));
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
             it would take the id back, and the new server would have no vote.\n",
            shown[index],
            whole_seconds(wait),
            shown.join(",")
        ))
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}
