//! What the servers of a quorum know without a majority.

use leasehold::store::LockListing;
#[cfg(any(feature = "exporter", feature = "redis"))]
use leasehold::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::output::colour::{Style, is_in_colour};
use crate::output::quorum_shortfall::needed;

/// The line above such an answer; `None` if a majority answered.
pub(crate) fn header(listing: &LockListing) -> Option<String> {
    if listing.has_majority() {
        return None;
    }
    let text = text(listing);
    Some(match is_in_colour() {
        true => format!("{}\n", Style::Red.paint(&text)),
        false => format!("{text}\n"),
    })
}

fn text(listing: &LockListing) -> String {
    let members = listing.members;
    format!(
        "no majority: answers from {} of {members} servers, {} needed; they may be wrong",
        members - listing.failures.len(),
        needed(members)
    )
}

/// The servers that did not answer, for programs.
pub(crate) fn unanswered(listing: &LockListing) -> Value {
    let failures = listing.failures.iter();
    failures
        .map(|failure| json!({"id": failure.id.as_str(), "reason": failure.error.reason()}))
        .collect()
}

/// Refuses an answer without a majority.
#[cfg(any(feature = "exporter", feature = "redis"))]
pub(crate) fn require_majority(listing: LockListing) -> Result<LockListing, Error> {
    if listing.has_majority() {
        return Ok(listing);
    }
    let error = Error::new(ErrorKind::NoQuorum, "no majority of the servers answered");
    Err(error.with_members(listing.failures))
}
