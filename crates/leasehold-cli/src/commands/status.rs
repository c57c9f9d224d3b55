use clap::Args;
use futures_util::future::try_join3;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::Holder;
use serde_json::json;

use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::break_text;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::holder_text;
use crate::output::waiter_text;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`; `store_source`, where
    /// the store was configured (null if nowhere); `held`, whether the lock is held; `permits` with `total`
    /// and `held`; `holders`, each with `mode`, `permits`, `owner`, `host`,
    /// `pid` and `program` (of the process that took the lock), `user`, `label`, `command` (what it runs),
    /// `since` (when it took the lock), `fence`, `remaining_ms`, `broken`, `foreign` (whether
    /// another library holds the lock) and `form` (what the value of a foreign lock looks like); `waiters`, as in
    /// `leasehold waiters`; `broken`, the last break of the lock, with `fence`, `owner`, `now`, `at`, `user`,
    /// `host`, `pid`, `program` and `reason`. Unknown values are null.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}

/// Shows the holders and waiters of a lock.
pub(crate) fn status(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_on_terminal(output);
    let client = store.client();
    let (waiters, holders, broken) = runtime()?.block_on(async {
        // All at once: a server that does not answer is waited for only once. In this order, a client that
        // acquires the lock meanwhile appears twice; in the other order, not at all.
        let waiters = client.waiters(&args.name);
        let holders = client.holders(&args.name);
        try_join3(waiters, holders, client.last_break(&args.name)).await
    })?;
    let now = SystemClock.wall();
    let printed = if args.json {
        output::print_json(&json!({
            "lock": args.name,
            "store": client.to_string(),
            "store_source": store.source(),
            "held": !holders.is_empty(),
            "permits": permits(&holders).map(|total| json!({
                "total": total,
                "held": holders.len(),
            })),
            "holders": holders.iter().map(holder_text::json).collect::<Vec<_>>(),
            "waiters": waiter_text::json(&waiters, now),
            "broken": broken.as_ref().map(break_text::json),
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
            lines += &break_text::line(&args.name, record);
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
