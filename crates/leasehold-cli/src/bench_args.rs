use std::time::Duration;

use clap::Args;
use leasehold::Lock;

use crate::args::{StoreArgs, span};

/// The arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// How long all measurements take together, 500ms to 1m.
    #[arg(long, value_name = "SPAN", value_parser = duration, default_value = "5s")]
    pub(crate) duration: Duration,

    /// How many locks are taken and freed at once where many are, 1 to 1024.
    #[arg(
        long,
        value_name = "N",
        value_parser = in_flight,
        allow_negative_numbers = true,
        default_value_t = 64
    )]
    pub(crate) in_flight: usize,

    /// The TTL of the locks, and of those in the estimate [default: 30s, or the store's longest if that
    /// is less].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field of these changes its
    /// meaning or goes; others may come.
    ///
    /// `store`, `ttl_ms`, `duration_ms`; `members`, each with `id`, `answers`, `counts`, `reason` (why it
    /// does not answer or count) and `round_trip`; `one_at_a_time` with `acquire`, `release` and
    /// `cycles_per_s`; `in_flight` with `in_flight`, `cycle`, `cycles_per_s` and `limited_by`; `hand_over`;
    /// `renewals` with `locks`, `locks_per_message`, `message`, `renewals_per_s` and `limited_by`;
    /// `estimate` with `locks_per_s` and `locks_renewed`.
    ///
    /// What was timed has `samples`, `p50_us` and `p99_us`. What does not apply, or could not be measured,
    /// is null. `limited_by` is `client_cpu`, `machine_cpu`, `in_flight` or `store`.
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchArgs {
    /// The TTL, in a store whose longest is `longest`.
    pub(crate) fn ttl(&self, longest: Duration) -> Duration {
        self.ttl.unwrap_or(Lock::DEFAULT_TTL.min(longest))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if (Duration::from_millis(500)..=Duration::from_secs(60)).contains(&span) {
        Ok(span)
    } else {
        Err("a measurement takes 500ms to 1m".into())
    }
}

fn in_flight(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err("1 to 1024 locks can be in flight".into()),
    }
}
