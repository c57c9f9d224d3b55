use std::fmt::Write as _;

use leasehold::{MemberSet, Presence};
use serde_json::{Value, json};

use crate::args::InitArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text::millis;
use crate::output;
use crate::set::survey::{Seen, survey};
use crate::set::{Servers, wait_after_change};
use crate::shortage::whole_seconds;
use crate::status::runtime;

/// Forms a set.
pub(crate) fn init(args: &InitArgs) -> Result<ExitCode, Failure> {
    let servers = Servers::choose_set(&args.store)?;
    let members = servers.members()?;
    let quorum = servers.quorum(members.clone())?;
    let seen = runtime()?.block_on(async {
        quorum.init().await?;
        Ok::<_, Failure>(survey(&members).await)
    })?;
    let printed = if args.json {
        output::print_json(&json(quorum.set(), &seen))
    } else {
        output::print(&text(quorum.set(), &seen))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn is_durable(seen: &Seen) -> bool {
    seen.presence.as_ref().is_ok_and(Presence::will_remember)
}

fn text(set: &MemberSet, seen: &[Seen]) -> String {
    let mut text = format!("formed the set {set}\n");
    for one in seen {
        let durable = if is_durable(one) {
            "durable"
        } else {
            "not durable"
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {durable}", one.id);
    }
    if !seen.iter().all(is_durable) {
        let wait = whole_seconds(wait_after_change(set));
        let _ = writeln!(
            text,
            "A server that is not durable does not count for {wait} after each restart. With \
             appendonly yes, appendfsync always and no-appendfsync-on-rewrite no in its configuration, and \
             no replicas, it counts at once from its second restart on."
        );
    }
    text
}

fn json(set: &MemberSet, seen: &[Seen]) -> Value {
    let member = |one: &Seen| json!({"id": one.id.as_str(), "durable": is_durable(one)});
    json!({
        "members": seen.iter().map(member).collect::<Vec<_>>(),
        "max_ttl_ms": millis(set.max_ttl),
        "clock_tolerance_ms": millis(set.clock_tolerance),
    })
}
