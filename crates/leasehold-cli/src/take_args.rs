use std::time::Duration;

use clap::Args;
use leasehold::Permits;

use crate::args::{StoreArgs, span};
use crate::exit_code::ExitCode;
use crate::wish::Wish;

/// Which lock is wanted, how, and for how long that is waited for: what `run`, `hold` and `acquire` have in
/// common.
#[derive(Debug, Args)]
pub(crate) struct TakeArgs {
    /// Do not wait: exit with 75 if the lock is held.
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// Wait at most so long for the lock, like 30s or 1m30s [default: without limit].
    #[arg(short, long, value_name = "SPAN", value_parser = span)]
    pub(crate) wait: Option<Duration>,

    /// Share the lock with others that share it; exclude only those that want it alone.
    #[arg(short, long)]
    pub(crate) shared: bool,

    /// Hold the lock together with others, N at most: take one of its N permits (1 to 128). N is the
    /// same for all who use the lock at a time.
    #[arg(
        long,
        value_name = "N",
        value_parser = permits,
        allow_negative_numbers = true,
        conflicts_with = "shared"
    )]
    pub(crate) permits: Option<Permits>,

    /// How long the lease lives without renewal.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30s")]
    pub(crate) ttl: Duration,

    /// The exit code if the lock was not acquired in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = ExitCode::BUSY.get())]
    pub(crate) busy_code: u8,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// The name of the lock.
    pub(crate) name: String,
}

impl TakeArgs {
    /// The wish for this one lock.
    pub(crate) fn wish(&self, json: bool) -> Wish {
        Wish {
            shared: self.shared,
            permits: self.permits,
            no_wait: self.no_wait,
            wait: self.wait,
            busy_code: self.busy_code,
            json,
            ..Wish::alone(&self.name, self.ttl)
        }
    }
}

fn permits(text: &str) -> Result<Permits, String> {
    let rule = || format!("a lock has 1 to {} permits", Permits::MAX);
    let number: u32 = text.parse().map_err(|_| rule())?;
    Permits::new(number).map_err(|_| rule())
}
