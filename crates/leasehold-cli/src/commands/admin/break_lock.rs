use clap::Args;
use leasehold::look::{
    BreakOptions, BreakOutcome, BreakRecord, BreakTarget, BrokenLease, Holder, Owner,
};
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
    /// A later holder has another fence, and is not hit by mistake. Without --fence, --owner and --yes nothing is broken.
    #[arg(long, value_name = "N", value_parser = fence, allow_negative_numbers = true)]
    pub(crate) fence: Option<Fence>,

    /// Break the lease of this owner, as --dry-run shows it.
    ///
    /// For shared locks and permits, whose leases have no fence in some stores.
    #[arg(long, value_name = "OWNER", conflicts_with = "fence")]
    pub(crate) owner: Option<Owner>,

    /// Break the lease of the only holder, with any fence.
    #[arg(long, conflicts_with_all = ["fence", "owner"])]
    pub(crate) yes: bool,

    /// Show the holders and what would be broken, and break nothing.
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
    /// `dry_run` (true), `holders` as in `status`, and `holder`: the one whose lease would be broken, or null.
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

/// Shows the holders, and which lease would be broken.
fn dry_run(args: &BreakArgs, client: &Client) -> Result<ExitCode, Failure> {
    let name = &args.name;
    let holders = runtime()?.block_on(client.breakable(name))?;
    if holders.is_empty() {
        return Err(is_free(name));
    }
    let meant = match args.target(&holders) {
        Some(target) => {
            let meant = holders.iter().find(|holder| target.is(holder));
            Some(meant.ok_or_else(|| no_such_lease(name, &holders, target))?)
        }
        None => None,
    };
    let printed = match args.json {
        true => output::print_json(&json!({
            "lock": name,
            "store": client.to_string(),
            "dry_run": true,
            "holder": meant.map(holder_text::json),
            "holders": holders.iter().map(holder_text::json).collect::<Vec<_>>(),
        })),
        false => output::print(&dry_text(name, &holders, meant)),
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}

fn dry_text(name: &str, holders: &[Holder], meant: Option<&Holder>) -> String {
    if let Some(holder) = meant {
        let holder = holder_text::phrase(holder);
        return format!("{name}: would break the lease of {holder}\n");
    }
    let lines = holders.iter().map(|holder| {
        let (option, holder) = (option_for(holder), holder_text::phrase(holder));
        format!("{name}: {option} would break the lease of {holder}\n")
    });
    lines.collect()
}

/// The option that names the lease of a holder.
fn option_for(holder: &Holder) -> String {
    match (holder.fence, holder.owner) {
        (Some(fence), _) => format!("--fence {fence}"),
        (None, Some(owner)) => format!("--owner {owner}"),
        (None, None) => "--yes".into(),
    }
}

fn is_free(name: &str) -> Failure {
    let text = format!("lock {name:?} is free; nothing is broken");
    Failure::new(ExitCode::LOST, text)
}

fn no_such_lease(name: &str, holders: &[Holder], target: BreakTarget) -> Failure {
    let not = match target {
        BreakTarget::Fence(fence) => format!("not with fence {fence}"),
        BreakTarget::Owner(owner) => format!("not by owner {owner}"),
    };
    let text = format!(
        "lock {name:?} is held by {}, {not}; nothing is broken",
        holder_text::phrases(holders)
    );
    Failure::new(ExitCode::LOST, text)
}

impl BreakArgs {
    /// The lease to break, if the arguments name one.
    fn target(&self, holders: &[Holder]) -> Option<BreakTarget> {
        let only = match holders {
            [only] => only.owner.filter(|_| self.yes || self.dry_run),
            _ => None,
        };
        let (fence, owner) = (self.fence.map(Into::into), self.owner.map(Into::into));
        fence.or(owner).or(only.map(Into::into))
    }
}

async fn perform(args: &BreakArgs, client: &Client) -> Result<(BrokenLease, BreakRecord), Failure> {
    let target = match args.target(&[]) {
        Some(target) => target,
        None => {
            let holders = client.breakable(&args.name).await?;
            let target = args.target(&holders);
            target.ok_or_else(|| without_target(&args.name, &holders))?
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
    match client.break_lock(&args.name, target, how).await? {
        BreakOutcome::Done(broken, record) => Ok((broken, *record)),
        BreakOutcome::Free => Err(is_free(&args.name)),
        BreakOutcome::HeldBy(holders) => Err(no_such_lease(&args.name, &holders, target)),
    }
}

fn without_target(name: &str, holders: &[Holder]) -> Failure {
    let held = holder_text::phrases(holders);
    match holders {
        [] => is_free(name),
        [only] => {
            let option = option_for(only);
            Failure::usage(format!(
                "lock {name:?} is held by {held}; nothing is broken: give {option} to break this lease, or --yes to \
                 break that of any holder"
            ))
        }
        _ => Failure::usage(format!(
            "lock {name:?} is held by {held}; nothing is broken: --dry-run shows the option for each lease"
        )),
    }
}

fn text(name: &str, broken: &BrokenLease, record: &BreakRecord, of: usize) -> String {
    let lease = break_text::lease(record);
    let members = if broken.members < of {
        format!(" on {} of {of} servers", broken.members)
    } else {
        String::new()
    };
    if record.at_once {
        return format!(
            "{name}: broken{members}, {lease}; its lease is over\n{name}: the old holder may work until \
             its next renewal; only a check of fences protects now\n"
        );
    }
    let closed = match broken.closed_for {
        Some(span) => format!("closed for {}", time_text::whole_millis(span)),
        None => "free".into(),
    };
    format!(
        "{name}: broken{members}, {lease}; {closed}, or until its holder has ended\n\
         {name}: the holder learns of it at its next renewal\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::clock::WallTime;
    use leasehold::env::{Env, SystemEntropy};
    use std::time::Duration;

    fn told(members: usize, of: usize) -> String {
        let by = Env::default().this_process(None);
        let owner = Owner::random(by.id, &SystemEntropy);
        let fence = Fence::new(12);
        let record = BreakRecord::new(owner, fence, by, WallTime::from_micros(0));
        let mut broken = BrokenLease::new(true, Some(Duration::from_micros(1_500_900)));
        broken.members = members;
        text("deploy", &broken, &record, of)
    }

    #[test]
    fn partial_break_names_the_number_of_members() {
        assert!(told(5, 5).starts_with("deploy: broken, fence 12; closed for 1s 500ms, or "));
        assert!(told(3, 5).starts_with("deploy: broken on 3 of 5 servers, fence 12; "));
    }
}
