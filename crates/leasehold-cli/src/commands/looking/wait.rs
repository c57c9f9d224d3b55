//! `leasehold wait`: waits until a lock is free, and does not take it.

use std::mem;
use std::time::Duration;

use clap::Args;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::look::Holder;
use leasehold::{Client, Error};

use crate::config;
use crate::options::span::wait_span;
use crate::options::store_args::StoreArgs;
use crate::options::timeout_args::TimeoutArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
use crate::output::locks::minority;
use crate::output::locks::wait::Wait;
use crate::output::message::Message;
use crate::runtime::runtime;
use crate::store::OpenStore;

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Maximum time to wait [default: LEASEHOLD_WAIT, or no limit].
    #[arg(short, long, value_name = "SPAN", value_parser = wait_span)]
    pub(crate) wait: Option<Duration>,

    /// Exit with CODE if the lock did not become free in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = ExitCode::BUSY.get())]
    pub(crate) busy_code: u8,

    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,

    /// The name of the lock.
    pub(crate) name: String,
}

/// Asks the store until no client holds the lock.
pub(crate) fn wait(args: &WaitArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let limit = choice.defaults().wait(args.wait, false)?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.watcher();
    runtime()?.block_on(async {
        let began = SystemClock.now();
        let (mut pause, mut known, mut is_silent) = (SHORTEST, None, false);
        loop {
            // Each question has time for an answer, however short the rest of the wait.
            let now = SystemClock.now();
            let rest = limit.map(|wait| (began + wait).since(now).max(ANSWER_MIN));
            let timeout = rest.map_or(args.timeout, |rest| args.timeout.at_most(rest));
            let asked = timeout.within(client.holders(&args.name)).await.flatten();
            let waited = SystemClock.now().since(began);
            let is_over = limit.is_some_and(|wait| waited >= wait);
            match asked {
                Ok(holders) if holders.is_empty() => {
                    output.clear_status();
                    return Ok(ExitCode::SUCCESS);
                }
                Ok(holders) if is_over => {
                    return Err(still_held(args, limit.unwrap_or(waited), &holders));
                }
                Ok(holders) => {
                    known = Some(holders);
                    is_silent = false;
                }
                // A store that has answered is right, and perhaps answers again.
                Err(error) if error.is_unreachable() && known.is_some() && !is_over => {
                    if !mem::replace(&mut is_silent, true) {
                        let text = format!("cannot ask the store at present: {error}");
                        output.print_message(&Message::Warning(&text));
                    }
                }
                Err(error) => {
                    let unknown = unknown(&client, &args.name, error);
                    return Err(args.timeout.within(unknown).await?);
                }
            }
            if output.has_terminal() && waited >= LONGEST {
                output.show_status(&Message::Waiting(Wait {
                    lock: &args.name,
                    holders: known.as_deref().unwrap_or_default(),
                    position: None,
                    outage: None,
                    so_far: waited,
                }));
            }
            let rest = limit.map_or(pause, |wait| wait.saturating_sub(waited));
            SystemClock
                .sleep_until(SystemClock.now() + pause.min(rest))
                .await;
            pause = (pause * 2).min(LONGEST);
        }
    })
}

fn still_held(args: &WaitArgs, wait: Duration, holders: &[Holder]) -> Failure {
    let text = format!(
        "gave up after {}: lock {:?} is held by {}",
        humantime::format_duration(wait),
        args.name,
        holder_text::phrases(holders)
    );
    Failure::busy(ExitCode::of(args.busy_code), text)
}

/// Why it is unknown whether the lock is free, and what the servers know that answer.
async fn unknown(client: &Client, name: &str, error: Error) -> Failure {
    let (code, why) = match minority::of_lock(client, name, error).await {
        Ok(listing) => (ExitCode::UNREACHABLE, minority::sentence(name, &listing)),
        Err(failure) => (failure.code, failure.to_string()),
    };
    let text = format!("cannot tell whether lock {name:?} is free: {why}");
    Failure::new(code, text)
}

/// The least time for an answer.
const ANSWER_MIN: Duration = Duration::from_millis(500);

/// The pauses between two questions grow from the first to the second.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
