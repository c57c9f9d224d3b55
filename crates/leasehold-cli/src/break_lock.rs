use leasehold::{Breach, Break, BreakRecord, Broken, Client, Holder};
use nix::unistd::{Uid, User};
use serde_json::{Value, json};

use crate::break_args::BreakArgs;
use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::output::{self, Output};
use crate::status::runtime;
use crate::store_url::OpenStore;

/// Takes a lock away from its holder.
pub(crate) fn break_lock(args: &BreakArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.client();
    let (broken, record) = runtime()?.block_on(perform(args, &client))?;
    let of = store.member_count();
    let printed = if args.json {
        output::print_json(&json!({
            "version": 1,
            "lock": args.name,
            "store": client.describe(),
            "shut_for_ms": broken.shut_for.map(holder_text::millis),
            "members": broken.members,
            "of": of,
            "broken": record_json(&record),
        }))
    } else {
        output::print(&text(&args.name, &broken, &record, of))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

async fn perform(args: &BreakArgs, client: &Client) -> Result<(Broken, BreakRecord), Failure> {
    let Some(fence) = args.fence else {
        let holder = client.breakable(&args.name).await?;
        return Err(without_fence(&args.name, holder.as_ref()));
    };
    let mut how = if args.now {
        Break::at_once()
    } else {
        Break::at_its_end()
    };
    how = how.by_user(user())?;
    if let Some(reason) = &args.reason {
        how = how.because(reason)?;
    }
    let refused = match client.break_lock(&args.name, fence, how).await? {
        Breach::Done(broken, record) => return Ok((broken, record)),
        Breach::Free => format!("lock {:?} is free; nothing is broken", args.name),
        Breach::HeldBy(holder) => {
            let why = match holder.fence {
                Some(_) => format!("not with fence {fence}"),
                None => {
                    "whose fence is unknown before its first renewal; try again then".to_owned()
                }
            };
            format!(
                "lock {:?} is held by {}, {why}; nothing is broken",
                args.name,
                holder_text::phrase(&holder)
            )
        }
    };
    Err(Failure::usage(refused))
}

fn without_fence(name: &str, holder: Option<&Holder>) -> Failure {
    let Some(holder) = holder else {
        return Failure::usage(format!("lock {name:?} is free; nothing is broken"));
    };
    let fence = holder
        .fence
        .map_or("N".to_owned(), |fence| fence.to_string());
    Failure::usage(format!(
        "lock {name:?} is held by {}; nothing is broken without --fence; give --fence {fence} to break \
         this lease",
        holder_text::phrase(holder)
    ))
}

/// The user of this process, by name or otherwise by number.
fn user() -> String {
    let uid = Uid::current();
    let known = User::from_uid(uid).ok().flatten();
    known.map_or_else(|| format!("uid {uid}"), |user| user.name)
}

fn text(name: &str, broken: &Broken, record: &BreakRecord, of: usize) -> String {
    let fence = record.fence;
    let members = if broken.members < of {
        format!(" on {} of {of} servers", broken.members)
    } else {
        String::new()
    };
    if record.at_once {
        return format!(
            "{name}: broken{members}, fence {fence}; free at once\n{name}: the old holder may work until \
             its next renewal; only a check of fences protects now\n"
        );
    }
    let shut = match broken.shut_for {
        Some(span) => format!("reserved for {}", holder_text::whole_millis(span)),
        None => "free".into(),
    };
    format!(
        "{name}: broken{members}, fence {fence}; {shut}, until its lease would have expired\n\
         {name}: the holder learns of it at its next renewal\n"
    )
}

/// How a lock was broken, as a line for people.
pub(crate) fn line(name: &str, record: &BreakRecord) -> String {
    let when = holder_text::timestamp(record.at);
    let how = if record.at_once {
        " and released at once"
    } else {
        ""
    };
    let fence = record.fence;
    format!("{name}: the lease with fence {fence} was broken{how} at {when} by {record}\n")
}

/// How a lock was broken, for programs.
pub(crate) fn record_json(record: &BreakRecord) -> Value {
    json!({
        "fence": record.fence.get(),
        "owner": record.owner.to_string(),
        "now": record.at_once,
        "at": holder_text::timestamp(record.at),
        "user": record.user,
        "host": record.by.host,
        "pid": record.by.pid,
        "program": record.by.program,
        "reason": record.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::ambient::{Ambient, SystemEntropy};
    use leasehold::clock::WallTime;
    use leasehold::{ClientInfo, Fence, Owner};
    use std::time::Duration;

    fn told(members: usize, of: usize) -> String {
        let by = ClientInfo::of_this_process(&Ambient::default(), None);
        let owner = Owner::random(by.id, &SystemEntropy);
        let fence = Fence::new(12).unwrap();
        let record = BreakRecord::new(owner, fence, by, WallTime::from_micros(0));
        let mut broken = Broken::new(true, Some(Duration::from_micros(1_500_900)));
        broken.members = members;
        text("deploy", &broken, &record, of)
    }

    #[test]
    fn a_break_that_missed_members_says_how_many_carried_it_out() {
        assert!(told(5, 5).starts_with("deploy: broken, fence 12; reserved for 1s 500ms, "));
        assert!(told(3, 5).starts_with("deploy: broken on 3 of 5 servers, fence 12; "));
    }
}
