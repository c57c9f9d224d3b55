use clap::Args;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::Order;
use serde_json::json;

use crate::commands::looking::watch::WatchArgs;
use crate::config;
use crate::options::store_args::StoreArgs;
use crate::options::table_args::TableArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::minority;
use crate::output::locks::waiter_text;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

/// The arguments of `waiters`.
#[derive(Debug, Args)]
pub(crate) struct WaitersArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`; `queue`, whether
    /// the store has a queue; `majority`, whether enough servers of a quorum answered (otherwise `waiters` is null, and
    /// `unanswered` has the others, each with `id` and `reason`); `waiters`, the next one first, each with `position` (from 1), `mode`,
    /// `permits`, `client` (`id`, `host`, `pid`, `program`, `user`, `label`, `command`, `since`), `since` and
    /// `waiting_ms`. Unknown values are null.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    /// The name of the lock.
    pub(crate) name: String,
}

/// Shows the waiters of a lock in order: all that the store returns, on Redis the first 1000.
pub(crate) fn waiters(args: &WaitersArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.watcher();
    let has_queue = client.guarantees().order != Order::Unordered;
    let mut code = ExitCode::SUCCESS;
    let showing = args.watch.show(async || {
        let (waiters, minority) = match client.waiters(&args.name).await {
            Ok(waiters) => (Some(waiters), None),
            Err(error) => (
                None,
                Some(minority::of_lock(&client, &args.name, error).await?),
            ),
        };
        code = match minority {
            Some(_) => ExitCode::UNREACHABLE,
            None => ExitCode::SUCCESS,
        };
        let now = SystemClock.wall();
        Ok(if args.json {
            output::json_line(&json!({
                "lock": args.name,
                "store": client.to_string(),
                "queue": has_queue,
                "majority": minority.is_none(),
                "unanswered": minority.as_ref().map_or(json!([]), minority::unanswered),
                "waiters": waiters.map(|waiters| waiter_text::json(&waiters, now)),
            }))
        } else if let Some(listing) = minority {
            let queue = "its queue is known only to a majority";
            format!(
                "{}{}: {queue}\n",
                minority::lines(&args.name, &listing),
                args.name
            )
        } else if !has_queue {
            let text = "this store keeps no queue, so its waiters are unknown";
            format!("{}: {text}\n", args.name)
        } else {
            match waiters.unwrap_or_default() {
                none if none.is_empty() => format!("{}: no waiters\n", args.name),
                waiters => waiter_text::table(&waiters, now, args.table.width()),
            }
        })
    });
    runtime()?.block_on(showing)?;
    Ok(code)
}
