use std::time::Duration;

use clap::Args;
use leasehold::Error;
use leasehold::clock::{Clock as _, SystemClock, within};

use crate::options::span::wait_span;

/// How long a store may take to answer. Part of the subcommands that only look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TimeoutArgs {
    /// Fail if the store has not answered within SPAN.
    ///
    /// The time includes connecting and the next server. With --watch, it is that of each picture. A request to one server
    /// fails after 2s in any case.
    #[arg(long, value_name = "SPAN", value_parser = timeout_span, default_value = "5s")]
    timeout: Duration,
}

pub(crate) fn timeout_span(text: &str) -> Result<Duration, String> {
    match wait_span(text)? {
        Duration::ZERO => Err("no store answers in no time; use a longer time".into()),
        span => Ok(span),
    }
}

impl TimeoutArgs {
    /// The same, for a question that must be answered within `span` as well, in whole milliseconds.
    pub(crate) fn at_most(self, span: Duration) -> Self {
        let millis = span.as_micros().div_ceil(1_000);
        let span = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        Self {
            timeout: self.timeout.min(span),
        }
    }

    /// Returns what `asking` does, unless it takes too long.
    pub(crate) async fn within<T>(self, asking: impl Future<Output = T>) -> Result<T, Error> {
        let end = SystemClock.now() + self.timeout;
        let answer = within(&SystemClock, end, asking).await;
        answer.ok_or_else(|| Error::no_answer_within(self.timeout))
    }
}
