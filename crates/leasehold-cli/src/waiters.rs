use leasehold::Order;
use leasehold::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::status::runtime;
use crate::store_url::OpenStore;
use crate::waiter_text;
use crate::waiters_args::WaitersArgs;

/// Shows the waiters of a lock in order: all that the store returns, on Redis the first 1000.
pub(crate) fn waiters(args: &WaitersArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.client();
    let waiters = runtime()?.block_on(client.waiters(&args.name))?;
    let has_queue = client.guarantees().order != Order::Unordered;
    let now = SystemClock.wall();
    let printed = if args.json {
        output::print_json(&json!({
            "version": 1,
            "lock": args.name,
            "store": client.describe(),
            "queue": has_queue,
            "waiters": waiter_text::json(&waiters, now),
        }))
    } else if !has_queue {
        output::print(&format!(
            "{}: this store keeps no queue, so its waiters are unknown\n",
            args.name
        ))
    } else if waiters.is_empty() {
        output::print(&format!("{}: no waiters\n", args.name))
    } else {
        output::print(&waiter_text::table(&waiters, now))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}
