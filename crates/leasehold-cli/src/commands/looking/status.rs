use clap::Args;
use futures_util::future::{join, try_join3};
use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::look::{BreakRecord, Holder, LockListing, Waiter};
use serde_json::{Value, json};

use crate::commands::looking::watch::WatchArgs;
use crate::config;
use crate::locks::last_run::LastRun;
use crate::locks::outer_runs::OuterRuns;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::break_text;
use crate::output::locks::holder_text;
use crate::output::locks::minority;
use crate::output::locks::waiter_text;
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
    /// the store was configured (null if nowhere); `held`, whether the lock is held; `majority`, whether enough servers of a
    /// quorum answered (otherwise `held` is null, and `unanswered` has the others, each with `id` and `reason`); `permits` with `total`
    /// and `held`; `holders`, each with `mode`, `permits`, `owner`, `host`,
    /// `pid` and `program` (of the process that took the lock), `user`, `label`, `command` (what it runs),
    /// `since` (when it took the lock), `fence`, `remaining_ms`, `broken`, `foreign` (whether
    /// another library holds the lock) and `form` (what the value of a foreign lock looks like); `waiters`, as in
    /// `leasehold waiters`; `broken`, the last break of the lock, with `fence`, `owner`, `now`, `at`, `user`,
    /// `host`, `pid`, `program` and `reason`; `last_run`, the last run with --record-end, with `holder` (a text), `host`, `pid`,
    /// `fence`, `since`, `until` and `exit_code` (null if the lock was lost). Unknown values are null.
    #[arg(long)]
    pub(crate) json: bool,

    /// Exit with 0 if held by an outer run, 1 if free, or 3.
    ///
    /// A process runs under the lock if `leasehold run` started it, or a process above it, and still holds the lock. With
    /// -q, nothing is printed.
    #[arg(long, conflicts_with = "watch")]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    /// The name of the lock.
    pub(crate) name: String,
}

/// Shows the holders and waiters of a lock.
pub(crate) fn status(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_on_terminal(output);
    let client = store.watcher();
    let mut code = ExitCode::SUCCESS;
    let showing = args.watch.show(async || {
        let state = LockStatus::read(&client, &args.name).await?;
        if state.minority.is_some() {
            code = ExitCode::UNREACHABLE;
        } else if args.check {
            code = state.code(store.location(), &args.name);
        }
        if args.check && output.is_quiet() {
            return Ok(String::new());
        }
        Ok(match args.json {
            true => output::json_line(&state.json(&args.name, &client.to_string(), store.source())),
            false => state.lines(&args.name),
        })
    });
    runtime()?.block_on(showing)?;
    Ok(code)
}

/// What a store says about a lock.
struct LockStatus {
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
    broken: Option<BreakRecord>,
    last_run: Option<LastRun>,
    /// What the servers that answered know, if they are no majority.
    minority: Option<LockListing>,
}

impl LockStatus {
    async fn read(client: &Client, name: &str) -> Result<Self, Failure> {
        // All at once: a server that does not answer is waited for only once. In this order, a client that
        // acquires the lock meanwhile appears twice; in the other order, not at all.
        let waiters = client.waiters(name);
        let holders = client.holders(name);
        let state = try_join3(waiters, holders, client.last_break(name));
        let (state, last_run) = join(state, LastRun::read(client, name)).await;
        match state {
            Ok((waiters, holders, broken)) => Ok(Self {
                holders,
                waiters,
                broken,
                last_run,
                minority: None,
            }),
            Err(error) => {
                let listing = minority::of_lock(client, name, error).await?;
                let sights = listing.locks.iter().flat_map(|lock| &lock.holders);
                Ok(Self {
                    holders: sights.map(|sight| sight.holder.clone()).collect(),
                    waiters: Vec::new(),
                    broken: None,
                    last_run: None,
                    minority: Some(listing),
                })
            }
        }
    }

    /// The exit code of `--check`.
    fn code(&self, location: &str, name: &str) -> ExitCode {
        let outer_runs = OuterRuns::of_this_process();
        let own = outer_runs.innermost(location, name);
        let is_own = |holder: &Holder| own.is_some_and(|lock| lock.is_held_by(holder));
        match self.holders.as_slice() {
            [] => ExitCode::FREE,
            holders if holders.iter().any(is_own) => ExitCode::SUCCESS,
            _ => ExitCode::HELD_BY_ANOTHER,
        }
    }

    fn json(&self, name: &str, store: &str, source: Option<&str>) -> Value {
        json!({
            "lock": name,
            "store": store,
            "store_source": source,
            "held": match &self.minority {
                None => Value::from(!self.holders.is_empty()),
                Some(_) => Value::Null,
            },
            "majority": self.minority.is_none(),
            "unanswered": self.minority.as_ref().map_or(json!([]), minority::unanswered),
            "permits": permits(&self.holders).map(|total| json!({
                "total": total,
                "held": self.holders.len(),
            })),
            "holders": self.holders.iter().map(holder_text::json).collect::<Vec<_>>(),
            "waiters": waiter_text::json(&self.waiters, SystemClock.wall()),
            "broken": self.broken.as_ref().map(break_text::json),
            "last_run": self.last_run.as_ref().map(LastRun::json),
        })
    }

    fn lines(&self, name: &str) -> String {
        if let Some(listing) = &self.minority {
            return minority::lines(name, listing);
        }
        let mut lines = String::new();
        if self.holders.is_empty() {
            lines += &format!("{name}: free\n");
            let last_run = self.last_run.as_ref();
            lines += &last_run.map_or_else(String::new, |run| run.line(name, SystemClock.wall()));
        }
        if let Some(total) = permits(&self.holders) {
            let held = self.holders.len();
            lines += &format!("{name}: {held} of {total} permits are held\n");
        }
        for holder in &self.holders {
            let held = if holder.broken { "was held" } else { "held" };
            lines += &format!("{name}: {held} by {}\n", holder_text::phrase(holder));
        }
        let shown = waiter_text::SHOWN_MAX;
        lines += &waiter_text::lines(name, &self.waiters, shown, SystemClock.wall());
        if let Some(record) = &self.broken {
            lines += &break_text::line(name, record);
        }
        lines
    }
}

/// The number of permits of the lock that `holders` hold, if it is used with permits.
fn permits(holders: &[Holder]) -> Option<u32> {
    holders
        .first()
        .and_then(|holder| holder_text::permits(holder.mode))
}
