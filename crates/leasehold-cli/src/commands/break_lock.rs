use clap::Args;
use leasehold::store::{BreakOptions, BreakOutcome, BreakRecord, BrokenLease, Holder};
use leasehold::{Client, Fence};
use serde_json::json;

use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::break_text;
use crate::output::locks::holder_text;
use crate::output::time_text;
use crate::output::{self, Output};
use crate::process::user;
use crate::runtime::runtime;
use crate::store::OpenStore;

/// The arguments of `break`.
#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Break the lease with this fence, as in `leasehold status`.
    ///
    /// A later holder has another fence, and is not hit by mistake. Without --fence and --yes nothing is broken, and the
    /// holder is shown.
    #[arg(long, value_name = "N", value_parser = fence, allow_negative_numbers = true)]
    pub(crate) fence: Option<Fence>,

    /// Break the lease of the present holder, whatever its fence.
    #[arg(long, conflicts_with = "fence")]
    pub(crate) yes: bool,

    /// Show what would be broken, and break nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Release the lock at once.
    ///
    /// The old holder may work until its next renewal, at the same time as the next holder. Only a check
    /// of fences protects against that.
    #[arg(long)]
    pub(crate) now: bool,

    /// Record a reason: one line of at most 512 bytes.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`; `closed_for_ms`,
    /// how long the lock stays closed, null if it is free; `members`, the number of servers on which
    /// it was broken, and `of`, the number of servers; `broken`, the record, as in `status`. With --dry-run: `lock`, `store`,
    /// `dry_run` (true) and `holder`, as in `status`.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}

fn fence(text: &str) -> Result<Fence, String> {
    let number = text.parse().ok().and_then(Fence::new);
    number.ok_or_else(|| "a fence is a whole number of at least 1; see `leasehold status`".into())
}

fn reason(text: &str) -> Result<String, String> {
    let checked = BreakOptions::at_its_end().because(text);
    checked.map_err(|error| error.reason().to_owned())?;
    Ok(text.to_owned())
}

/// Takes a lock away from its holder.
pub(crate) fn break_lock(args: &BreakArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.client();
    if args.dry_run {
        return dry_run(args, &client);
    }
    let (broken, record) = runtime()?.block_on(perform(args, &client))?;
    let of = store.copies();
    let printed = if args.json {
        output::print_json(&json!({
            "lock": args.name,
            "store": client.to_string(),
            "closed_for_ms": broken.closed_for.map(time_text::millis),
            "members": broken.members,
            "of": of,
            "broken": break_text::json(&record),
        }))
    } else {
        output::print(&text(&args.name, &broken, &record, of))
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the lease that would be broken.
fn dry_run(args: &BreakArgs, client: &Client) -> Result<ExitCode, Failure> {
    let name = &args.name;
    let holder = runtime()?.block_on(client.breakable(name))?;
    let holder = holder.ok_or_else(|| is_free(name))?;
    if args.fence.is_some() && args.fence != holder.fence {
        let text = format!(
            "lock {name:?} is held by {}, which has another fence; nothing would be broken",
            holder_text::phrase(&holder)
        );
        return Err(Failure::new(ExitCode::LOST, text));
    }
    let printed = match args.json {
        true => output::print_json(&json!({
            "lock": name,
            "store": client.to_string(),
            "dry_run": true,
            "holder": holder_text::json(&holder),
        })),
        false => output::print(&format!(
            "{name}: would break the lease of {}\n",
            holder_text::phrase(&holder)
        )),
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}

fn is_free(name: &str) -> Failure {
    let text = format!("lock {name:?} is free; nothing is broken");
    Failure::new(ExitCode::LOST, text)
}

async fn perform(args: &BreakArgs, client: &Client) -> Result<(BrokenLease, BreakRecord), Failure> {
    let fence = match args.fence {
        Some(fence) => fence,
        None => {
            let holder = client.breakable(&args.name).await?;
            match holder.as_ref().and_then(|holder| holder.fence) {
                Some(fence) if args.yes => fence,
                _ => return Err(without_fence(&args.name, holder.as_ref())),
            }
        }
    };
    let mut how = if args.now {
        BreakOptions::at_once()
    } else {
        BreakOptions::at_its_end()
    };
    how = how.by_user(user::name())?;
    if let Some(reason) = &args.reason {
        how = how.because(reason)?;
    }
    let refused = match client.break_lock(&args.name, fence, how).await? {
        BreakOutcome::Done(broken, record) => return Ok((broken, *record)),
        BreakOutcome::Free => return Err(is_free(&args.name)),
        BreakOutcome::HeldBy(holder) => {
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
    Err(Failure::new(ExitCode::LOST, refused))
}

fn without_fence(name: &str, holder: Option<&Holder>) -> Failure {
    let Some(holder) = holder else {
        return is_free(name);
    };
    let fence = holder
        .fence
        .map_or("N".to_owned(), |fence| fence.to_string());
    Failure::usage(format!(
        "lock {name:?} is held by {}; nothing is broken without --fence; give --fence {fence} to break \
         this lease, or --yes to break that of any holder",
        holder_text::phrase(holder)
    ))
}

fn text(name: &str, broken: &BrokenLease, record: &BreakRecord, of: usize) -> String {
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
    let closed = match broken.closed_for {
        Some(span) => format!("closed for {}", time_text::whole_millis(span)),
        None => "free".into(),
    };
    format!(
        "{name}: broken{members}, fence {fence}; {closed}, until its lease would have expired\n\
         {name}: the holder learns of it at its next renewal\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Fence;
    use leasehold::clock::WallTime;
    use leasehold::env::{Env, SystemEntropy};
    use leasehold::store::Owner;
    use std::time::Duration;

    fn told(members: usize, of: usize) -> String {
        let by = Env::default().this_process(None);
        let owner = Owner::random(by.id, &SystemEntropy);
        let fence = Fence::new(12).unwrap();
        let record = BreakRecord::new(owner, fence, by, WallTime::from_micros(0));
        let mut broken = BrokenLease::new(true, Some(Duration::from_micros(1_500_900)));
        broken.members = members;
        text("deploy", &broken, &record, of)
    }

    #[test]
    fn partial_break_names_the_number_of_members() {
        assert!(told(5, 5).starts_with("deploy: broken, fence 12; closed for 1s 500ms, "));
        assert!(told(3, 5).starts_with("deploy: broken on 3 of 5 servers, fence 12; "));
    }
}
