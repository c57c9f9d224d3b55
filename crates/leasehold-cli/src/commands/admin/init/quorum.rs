//! `leasehold init` of a quorum.

use std::fmt::Write as _;

use leasehold::member::{MemberSet, MemberStatus};
use serde_json::{Value, json};

use crate::commands::admin::init::InitArgs;
use crate::commands::admin::members::ask_members::{MemberReply, ask_members, stated_set};
use crate::commands::admin::members::servers::{Servers, wait_after_change};
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::time_text::millis;
use crate::output::time_text::whole_seconds;
use crate::output::{self, Output};
use crate::runtime::runtime;

/// Initializes a quorum. Does nothing if it is already initialized with the same configuration.
pub(crate) fn initialize(args: &InitArgs, output: &Output) -> Result<ExitCode, Failure> {
    let servers = Servers::choose_quorum(&args.store, output)?;
    let quorum = servers.quorum();
    let quorum = &quorum.within(args.max_ttl, args.clock_tolerance)?;
    let (is_new, seen) = runtime()?.block_on(async {
        let is_new = quorum.init(args.new).await?;
        Ok::<_, Failure>((is_new, ask_members(quorum).await))
    })?;
    let set = stated_set(quorum, &seen);
    let printed = if args.json {
        output::print_json(&json(&set, &seen))
    } else {
        output::print(&text(&set, &seen, is_new))
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}

fn is_durable(seen: &MemberReply) -> bool {
    seen.status.as_ref().is_ok_and(MemberStatus::will_remember)
}

fn text(set: &MemberSet, seen: &[MemberReply], is_new: bool) -> String {
    let mut text = if is_new {
        format!("initialized the quorum {set}\n")
    } else {
        format!("nothing to do: the quorum is initialized: {set}\n")
    };
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
            "A server that is not durable has no vote for {wait} after each restart. To make it durable, \
             set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no in its configuration, \
             and run it without replicas; from its second restart on it keeps its vote."
        );
    }
    text
}

fn json(set: &MemberSet, seen: &[MemberReply]) -> Value {
    let member = |one: &MemberReply| json!({"id": one.id.as_str(), "address": one.id.address(), "durable": is_durable(one)});
    json!({
        "members": seen.iter().map(member).collect::<Vec<_>>(),
        "max_ttl_ms": millis(set.max_ttl),
        "clock_tolerance_ms": millis(set.clock_tolerance),
    })
}
