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
    /// Default: 5s, and 1m for a list of locks, which takes many requests. The time includes connecting and the next server. With
    /// --watch, it is that of each picture. A request to one server fails after 2s in any case.
    #[arg(long, value_name = "SPAN", value_parser = timeout_span)]
    timeout: Option<Duration>,
}

const USUAL: Duration = Duration::from_secs(5);

/// For a list of locks.
const OF_A_LIST: Duration = Duration::from_secs(60);

pub(crate) fn timeout_span(text: &str) -> Result<Duration, String> {
    match wait_span(text)? {
        Duration::ZERO => Err("no store answers in no time; use a longer time".into()),
        span => Ok(span),
    }
}

impl TimeoutArgs {
    /// The same for a list of locks: a large one takes many requests, and each request has a limit of its own.
    pub(crate) fn of_a_list(self) -> Self {
        Self {
            timeout: self.timeout.or(Some(OF_A_LIST)),
        }
    }

    /// The same, for a question that must be answered within `span` as well, in whole milliseconds.
    pub(crate) fn at_most(self, span: Duration) -> Self {
        let millis = span.as_micros().div_ceil(1_000);
        let span = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        Self {
            timeout: Some(self.timeout.unwrap_or(USUAL).min(span)),
        }
    }

    /// Returns what `asking` does, unless it takes too long.
    pub(crate) async fn within<T>(self, asking: impl Future<Output = T>) -> Result<T, Error> {
        let limit = self.timeout.unwrap_or(USUAL);
        let answer = within(&SystemClock, SystemClock.now() + limit, asking).await;
        answer.ok_or_else(|| Error::no_answer_within(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_more_time_unless_one_is_given() {
        let unsaid = TimeoutArgs { timeout: None };
        assert_eq!(unsaid.of_a_list().timeout, Some(OF_A_LIST));
        let given = Some(Duration::from_secs(1));
        let said = TimeoutArgs { timeout: given };
        assert_eq!(said.of_a_list().timeout, given);
        let rest = Duration::from_micros(1_500);
        let most = Some(Duration::from_millis(2));
        assert_eq!(said.at_most(rest).timeout, most);
    }
}
