use std::time::Duration;

use clap::Args;
use leasehold::store::Permits;

use crate::options::defaults::Defaults;
use crate::options::holder_args::LabelArgs;
use crate::options::lock_options::LockOptions;
use crate::options::span::{span, wait_span};
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// Which lock to acquire, how, and how long to wait: common to `run`, `hold` and `acquire`.
#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// Do not wait: exit with 75 if the lock is held.
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// Maximum time to wait [default: LEASEHOLD_WAIT, or no limit].
    ///
    /// A duration such as 30s or 1m30s, or a number of seconds. Without it, a wait continues through an outage of the
    /// store; only a store that never answers is given up after one TTL (69). Without LEASEHOLD_WAIT, `wait` in
    /// leasehold.toml is the default.
    #[arg(short, long, value_name = "SPAN", value_parser = wait_span)]
    pub(crate) wait: Option<Duration>,

    /// Share the lock with other shared holders.
    ///
    /// Excludes only exclusive holders.
    #[arg(short, long)]
    pub(crate) shared: bool,

    /// Take one of N permits of the lock, 1 to 128.
    ///
    /// At most N clients hold the lock together. All current users of the lock must use the same N.
    #[arg(
        long,
        value_name = "N",
        value_parser = permits,
        allow_negative_numbers = true,
        conflicts_with = "shared"
    )]
    pub(crate) permits: Option<Permits>,

    /// How long the lease lasts without renewal.
    ///
    /// Default: LEASEHOLD_TTL, then `ttl` in leasehold.toml, then 30s or what the store allows.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    /// Exit with CODE if the lock was not acquired in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = ExitCode::BUSY.get())]
    pub(crate) busy_code: u8,

    #[command(flatten)]
    pub(crate) label: LabelArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl LockArgs {
    /// The request for the lock `name`.
    pub(crate) fn lock_options(
        &self,
        name: &str,
        json: bool,
        defaults: Defaults,
    ) -> Result<LockOptions, Failure> {
        Ok(LockOptions {
            shared: self.shared,
            permits: self.permits,
            no_wait: self.no_wait,
            wait: defaults.wait(self.wait, self.no_wait)?,
            busy_code: self.busy_code,
            json,
            label: self.label.label.clone(),
            ..LockOptions::alone(name, defaults.ttl(self.ttl)?)
        })
    }
}

fn permits(text: &str) -> Result<Permits, String> {
    let rule = || format!("the number of permits must be 1 to {}", Permits::MAX);
    let number: u32 = text.parse().map_err(|_| rule())?;
    Permits::new(number).map_err(|_| rule())
}
