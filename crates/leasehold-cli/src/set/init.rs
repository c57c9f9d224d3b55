use std::fmt::Write as _;
use std::sync::Arc;

use leasehold::{Member, MemberSet, Presence};
use serde_json::{Value, json};

use crate::args::InitArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text::millis;
use crate::output;
use crate::set::survey::{Seen, limited, survey};
use crate::set::{Servers, wait_after_change};
use crate::shortage::whole_seconds;
use crate::status::runtime;

/// Forms a set.
pub(crate) fn init(args: &InitArgs) -> Result<ExitCode, Failure> {
    let servers = Servers::choose_set(&args.store)?;
    let members = servers.members()?;
    let quorum = servers.quorum(members.clone())?;
    let seen = runtime()?.block_on(async {
        let seen = survey(&members).await;
        refuse_obstacles(quorum.set(), &members, &seen).await?;
        // It asks again, and writes nothing if anything came between.
        quorum.init().await?;
        Ok::<_, Failure>(seen)
    })?;
    let printed = if args.json {
        output::print_json(&json(quorum.set(), &seen))
    } else {
        output::print(&text(quorum.set(), &seen))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with everything that is in the way; the library names the first of it alone.
async fn refuse_obstacles(
    set: &MemberSet,
    members: &[Arc<dyn Member>],
    seen: &[Seen],
) -> Result<(), Failure> {
    let is_ours = |seen: &Seen| card_of(seen).is_some_and(|card| card.set == *set);
    if seen.iter().all(is_ours) {
        return Err(Failure::usage(
            "the set is formed already: `leasehold members` shows it",
        ));
    }
    let mut obstacles: Vec<Failure> = Vec::new();
    for (member, one) in members.iter().zip(seen) {
        if let Some(obstacle) = obstacle(member, one, seen).await {
            obstacles.push(obstacle);
        }
    }
    let Some(first) = obstacles.first() else {
        return Ok(());
    };
    // What waiting does not mend is what has to be told.
    let is_usage = obstacles.iter().any(|it| it.code == ExitCode::USAGE);
    let code = if is_usage {
        ExitCode::USAGE
    } else {
        first.code
    };
    let texts: Vec<_> = obstacles.iter().map(Failure::to_string).collect();
    let text = format!("nothing was written: {}", texts.join("; "));
    Err(Failure::new(code, text))
}

async fn obstacle(member: &Arc<dyn Member>, one: &Seen, all: &[Seen]) -> Option<Failure> {
    let refuse = |what: String| Some(Failure::usage(format!("{}: {what}", one.id)));
    let presence = match &one.presence {
        Ok(presence) => presence,
        Err(error) => return Some(error.clone().into()),
    };
    if let Some(why) = &presence.unfit {
        return refuse(format!("can be no member: {why}"));
    }
    if let Some(card) = &presence.card {
        let (generation, set) = (card.generation, &card.set);
        return refuse(format!(
            "has a card already: generation {generation} of {set}"
        ));
    }
    let is_twin = |other: &&Seen| {
        let same_run = |theirs: &Presence| theirs.run == presence.run;
        other.id != one.id && other.presence.as_ref().is_ok_and(same_run)
    };
    if let Some(twin) = all.iter().find(is_twin) {
        return refuse(format!("is the same server as {}", twin.id));
    }
    match limited(member.list("", 1)).await {
        Ok(held) => {
            let key = held.first()?.as_str();
            refuse(format!("lock {key:?} is held there"))
        }
        Err(error) => Some(error.with_store(one.id.as_str()).into()),
    }
}

fn card_of(seen: &Seen) -> Option<&leasehold::Card> {
    seen.presence.as_ref().ok()?.card.as_ref()
}

fn is_durable(seen: &Seen) -> bool {
    seen.presence
        .as_ref()
        .is_ok_and(|presence| presence.durable)
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
             appendonly yes, appendfsync always and no-appendfsync-on-rewrite no it counts at once."
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
