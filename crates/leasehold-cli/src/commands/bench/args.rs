use std::time::Duration;

use clap::Args;
use leasehold::Lock;

use crate::options::span::span;
use crate::options::store_args::StoreArgs;

/// The arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Spend this time on all measurements together, 500ms to 1m.
    #[arg(long, value_name = "SPAN", value_parser = duration, default_value = "5s")]
    pub(crate) duration: Duration,

    /// Take this many locks at once, 1 to 1024.
    ///
    /// For the measurements with many locks at once.
    #[arg(
        long,
        value_name = "N",
        value_parser = in_flight,
        allow_negative_numbers = true,
        default_value_t = 64
    )]
    pub(crate) in_flight: usize,

    /// The TTL of the locks, also for the estimate.
    ///
    /// Default: 30s, or the longest TTL of the store if that is less.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `store`, `ttl_ms`, `duration_ms`;
    /// `members`, each with `id`, `answers`, `has_vote`, `reason` (why it does not answer or
    /// has no vote) and `round_trip`; `one_at_a_time` with `acquire`, `release` and `cycles_per_s`;
    /// `in_flight` with `in_flight`, `cycle`, `cycles_per_s` and `limited_by`; `hand_over`; `renewals`
    /// with `locks`, `locks_per_message`, `message`, `renewals_per_s` and `limited_by`; `estimate` with
    /// `locks_per_s` and `locks_renewed`.
    ///
    /// A timing has `samples`, `p50_us` and `p99_us`. Values that do not apply or could not be measured
    /// are null. `limited_by` is `client_cpu`, `machine_cpu`, `in_flight` or `store`.
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchArgs {
    /// The TTL, for a store whose maximum is `longest`.
    pub(crate) fn ttl(&self, longest: Duration) -> Duration {
        self.ttl.unwrap_or(Lock::DEFAULT_TTL.min(longest))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if (Duration::from_millis(500)..=Duration::from_secs(60)).contains(&span) {
        Ok(span)
    } else {
        Err("the duration must be 500ms to 1m".into())
    }
}

fn in_flight(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err("the number of locks must be 1 to 1024".into()),
    }
}
