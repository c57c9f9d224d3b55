//! Pure: the checks that every kind of store has, with the same ids, thresholds and verdicts.

use std::time::Duration;

use leasehold::Error;
use leasehold::store::rough_span;

use crate::output::finding::Finding;
use crate::output::table::short;

/// A median above this makes locks slow, and short leases fail.
const SLOW: Duration = Duration::from_millis(50);

/// How a connection reaches its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tls,
    ThisMachine,
    PlainNetwork,
}

impl Transport {
    pub(super) fn of(is_encrypted: bool, is_local: bool) -> Self {
        match (is_encrypted, is_local) {
            (true, _) => Self::Tls,
            (false, true) => Self::ThisMachine,
            (false, false) => Self::PlainNetwork,
        }
    }
}

/// The check of a server that could not be examined.
pub(super) fn unreachable(error: &Error, remedy: impl Into<String>) -> Finding {
    let why = "a server that does not answer grants no locks";
    Finding::red("reachable", error.reason(), why, remedy)
}

/// A fact that could not be read is no fault of the server.
pub(super) fn unknown(check: &'static str, error: &Error, remedy: &str) -> Finding {
    let found = format!("unknown: {}", error.reason());
    Finding::yellow(check, found, "not checked", remedy)
}

pub(super) fn encryption(transport: Transport, remedy: &str) -> Finding {
    let id = "encryption";
    match transport {
        Transport::Tls => Finding::green(id, "TLS"),
        Transport::ThisMachine => Finding::green(id, "the connection does not leave this machine"),
        Transport::PlainNetwork => Finding::yellow(
            id,
            "none",
            "anyone on the network path can take locks, and read the password if there is one",
            remedy,
        ),
    }
}

/// The first two numbers of a version.
pub(super) fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

pub(super) fn version(version: &str, least: (u32, u32)) -> Finding {
    if numbers(version) >= least {
        return Finding::green("version", version);
    }
    let (major, minor) = least;
    let why = format!("locks need version {major}.{minor} or later");
    Finding::red("version", version, why, "update the server")
}

/// Of an ensemble, whose URL names `named` servers.
pub(super) fn quorum(answering: usize, named: usize, has_majority: bool) -> Finding {
    let found = format!("{answering} of {named} servers answer");
    if !has_majority {
        let why = "no lock can be acquired or renewed without a majority";
        let remedy = "start those that do not answer, and see their logs";
        return Finding::red("quorum", found, why, remedy);
    }
    if answering < named {
        let why = "fewer failures than planned stop all locks";
        let remedy = "start the others, or remove them from the URL";
        return Finding::yellow("quorum", found, why, remedy);
    }
    Finding::green("quorum", found)
}

/// The smallest requests, from the fastest to the slowest.
pub(super) fn round_trip(sorted: &[Duration]) -> Option<Finding> {
    let (median, longest) = (*sorted.get(sorted.len() / 2)?, *sorted.last()?);
    let found = match sorted.len() {
        1 => short(median),
        count => format!(
            "median {}, max {} ({count} samples)",
            short(median),
            short(longest)
        ),
    };
    if median <= SLOW {
        return Some(Finding::green("round_trip", found));
    }
    let least = rough_span(median * 20);
    let why = format!("a lock takes one to three of these; with TTLs below {least} it is too slow");
    let remedy = "run clients closer to it, or use longer TTLs";
    Some(Finding::yellow("round_trip", found, why, remedy))
}
