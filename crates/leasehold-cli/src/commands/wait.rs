//! `leasehold wait`: waits until a lock is free, and does not take it.

use std::time::Duration;

use clap::Args;
use leasehold::clock::{Clock as _, SystemClock};

use crate::config;
use crate::options::defaults;
use crate::options::span::wait_span;
use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
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

    /// The name of the lock.
    pub(crate) name: String,
}

/// Asks the store until no client holds the lock.
pub(crate) fn wait(args: &WaitArgs, output: &Output) -> Result<ExitCode, Failure> {
    let limit = defaults::wait(args.wait, false)?;
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.client();
    runtime()?.block_on(async {
        let began = SystemClock.now();
        let mut pause = SHORTEST;
        loop {
            let holders = client.holders(&args.name).await?;
            let waited = SystemClock.now().since(began);
            if holders.is_empty() {
                output.clear_status();
                return Ok(ExitCode::SUCCESS);
            }
            let rest = limit.map(|wait| wait.saturating_sub(waited));
            if let (Some(wait), Some(Duration::ZERO)) = (limit, rest) {
                output.clear_status();
                let text = format!(
                    "gave up after {}: lock {:?} is held by {}",
                    humantime::format_duration(wait),
                    args.name,
                    holder_text::phrases(&holders)
                );
                return Err(Failure::busy(ExitCode::of(args.busy_code), text));
            }
            if output.has_terminal() && waited >= LONGEST {
                output.show_status(&Message::Waiting(Wait {
                    lock: &args.name,
                    holders: &holders,
                    position: None,
                    quorum_shortfall: None,
                    so_far: waited,
                }));
            }
            let now = SystemClock.now();
            let next = now + rest.map_or(pause, |rest| pause.min(rest));
            SystemClock.sleep_until(next).await;
            pause = (pause * 2).min(LONGEST);
        }
    })
}

/// The pauses between two questions grow from the first to the second.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
