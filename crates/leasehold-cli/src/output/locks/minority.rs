//! What the servers of a quorum know without a majority.

use leasehold::look::{LockListing, Pattern};
use leasehold::{Client, Error, ErrorKind};
use serde_json::{Value, json};

use crate::output::colour::{Style, is_in_colour};
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
use crate::output::quorum_shortfall::needed;

/// Reads what the servers that answer know about a lock, after a question to a majority failed with `error`. Fails with that if
/// the reason is another one.
pub(crate) async fn of_lock(
    client: &Client,
    name: &str,
    error: Error,
) -> Result<LockListing, Failure> {
    if error.kind() != ErrorKind::NoQuorum {
        return Err(error.into());
    }
    // A name with `*` matches other names as well.
    let mut listing = match client.list_locks(&Pattern::new(name)?, LISTED_MAX).await {
        Ok(listing) if !listing.has_majority() => listing,
        _ => return Err(error.into()),
    };
    listing.locks.retain(|lock| lock.key.as_str() == name);
    Ok(listing)
}

/// How many locks are read to find one whose name is also a pattern.
const LISTED_MAX: usize = 1_000;

/// What the servers that answered know about a lock, and why the others did not answer: a line for each.
pub(crate) fn lines(name: &str, listing: &LockListing) -> String {
    let known = known(name, listing).into_iter();
    header(listing)
        .into_iter()
        .chain(known.map(|line| format!("{line}\n")))
        .collect()
}

/// The same in one sentence.
pub(crate) fn sentence(name: &str, listing: &LockListing) -> String {
    let mut parts = vec![text(listing)];
    parts.extend(known(name, listing));
    parts.join("; ")
}

fn known(name: &str, listing: &LockListing) -> Vec<String> {
    let answered = listing.members - listing.failures.len();
    let servers = if answered == 1 { "server" } else { "servers" };
    let mut known = Vec::new();
    if listing.locks.is_empty() {
        known.push(format!("{name}: no server that answers knows a holder"));
    }
    for sight in listing.locks.iter().flat_map(|lock| &lock.holders) {
        let holder = holder_text::phrase(&sight.holder);
        let members = sight.members;
        known.push(format!(
            "{name}: perhaps held by {holder}, says {members} of {answered} {servers}"
        ));
    }
    let failures = listing.failures.iter();
    known.extend(failures.map(|failure| format!("no answer: {failure}")));
    known
}

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
