use std::time::Duration;

use crate::output::failure::Failure;

/// Which store is configured, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// These addresses.
    Stores(Addresses),
    /// The files of this machine and user, by request.
    Local,
    /// The files of this machine and user, by default.
    Unsaid,
}

/// The addresses of a store and its limits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) urls: Vec<String>,
    pub(crate) limits: Limits,
    /// Their source, for error messages.
    pub(crate) source: String,
}

/// The limits of a quorum that are configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) max_ttl: Option<Duration>,
    pub(crate) clock_tolerance: Option<Duration>,
}

impl Addresses {
    pub(crate) fn new(urls: Vec<String>, limits: Limits, source: String) -> Result<Self, Failure> {
        if urls.iter().all(String::is_empty) {
            return Err(Failure::usage(format!(
                "{source} names no store; expected a URL such as redis://host or file:///folder"
            )));
        }
        if urls.iter().any(String::is_empty) {
            return Err(Failure::usage(format!(
                "{source} contains an empty address; remove the extra comma"
            )));
        }
        Ok(Self {
            urls,
            limits,
            source,
        })
    }
}

impl Limits {
    /// These limits, with those of `others` as defaults.
    pub(super) fn or(self, others: Self) -> Self {
        Self {
            max_ttl: self.max_ttl.or(others.max_ttl),
            clock_tolerance: self.clock_tolerance.or(others.clock_tolerance),
        }
    }

    /// The name of one that is configured, for error messages.
    pub(crate) fn any(&self) -> Option<&'static str> {
        let max_ttl = self.max_ttl.map(|_| "max_ttl");
        max_ttl.or(self.clock_tolerance.map(|_| "clock_tolerance"))
    }
}
