use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Error, Holder};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::args::StatusArgs;
use crate::break_lock;
use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::output::{self, Output};
use crate::store_url::OpenStore;
use crate::waiter_text;

/// Shows the holders and waiters of a lock.
pub(crate) fn status(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.client();
    let (waiters, holders, broken) = runtime()?.block_on(async {
        // In this order, a client that acquires the lock meanwhile appears twice; in the other order,
        // not at all.
        let waiters = client.waiters(&args.name).await?;
        let holders = client.holders(&args.name).await?;
        Ok::<_, Error>((waiters, holders, client.last_break(&args.name).await?))
    })?;
    let now = SystemClock.wall();
    let printed = if args.json {
        output::print_json(&json!({
            "version": 1,
            "lock": args.name,
            "store": client.describe(),
            "held": !holders.is_empty(),
            "permits": permits(&holders).map(|total| json!({
                "total": total,
                "held": holders.len(),
            })),
            "holders": holders.iter().map(holder_text::json).collect::<Vec<_>>(),
            "waiters": waiter_text::json(&waiters, now),
            "broken": broken.as_ref().map(break_lock::record_json),
        }))
    } else {
        let mut lines = String::new();
        if holders.is_empty() {
            lines += &format!("{}: free\n", args.name);
        }
        if let Some(total) = permits(&holders) {
            lines += &format!(
                "{}: {} of {total} permits are held\n",
                args.name,
                holders.len()
            );
        }
        for holder in &holders {
            let held = if holder.broken { "was held" } else { "held" };
            lines += &format!("{}: {held} by {}\n", args.name, holder_text::phrase(holder));
        }
        let shown = waiter_text::SHOWN_MAX;
        lines += &waiter_text::lines(&args.name, &waiters, shown, now);
        if let Some(record) = &broken {
            lines += &break_lock::line(&args.name, record);
        }
        output::print(&lines)
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// The number of permits of the lock that `holders` hold, if it is used with permits.
fn permits(holders: &[Holder]) -> Option<u32> {
    holders
        .first()
        .and_then(|holder| holder_text::permits(holder.mode))
}

/// A runtime for the waits of the program; the thread of the client polls the store.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of("cannot start a runtime", &error))
}
