use std::fmt;
use std::time::Duration;

use leasehold::Error;

use crate::output::quorum_shortfall::QuorumShortfall;

/// Why a store grants no lock to any client at present.
#[derive(Debug)]
pub(crate) enum Outage {
    /// Too few servers of a quorum have a vote. A warning has named each of them and its reason.
    NoQuorum(QuorumShortfall),
    /// The store does not answer, or is not ready.
    Failed(Error),
}

impl Outage {
    /// The most important part, in one line.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::NoQuorum(shortfall) => shortfall.summary(),
            Self::Failed(error) => error.to_string(),
        }
    }

    /// When the store grants locks again, if only time is missing.
    pub(crate) fn no_vote_for(&self) -> Option<Duration> {
        match self {
            Self::NoQuorum(shortfall) => shortfall.no_vote_for(),
            Self::Failed(error) => error.eligible_after(),
        }
    }

    /// What must change before a wait says it again: time alone does not count.
    pub(crate) fn causes(&self) -> Vec<String> {
        match self {
            Self::NoQuorum(shortfall) => {
                let failures = shortfall.failures.iter();
                failures.map(|failure| failure.id.to_string()).collect()
            }
            Self::Failed(error) => vec![error.to_string()],
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQuorum(shortfall) => shortfall.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}
