//! The spans of the library, and what is told within them: the names that stand in the manual.
//!
//! No field has an owner, for whoever knows one can free its lock, and none has a URL.

use std::fmt;
use std::time::Duration;

use tracing::Span;
use tracing::field::{Empty, debug};

use super::words::{ReleaseEnd, RenewalEnd, WaitEnd, Words as _};
use crate::claim::{Claim, Mode};
use crate::error::Error;
use crate::key::Key;
use crate::member::MemberId;

/// A call of `acquire` or `try_acquire`, within the span of its caller.
pub(crate) fn acquire(lock: &Key, mode: Mode) -> Span {
    tracing::info_span!("acquire", %lock, %mode, outcome = Empty, waited = Empty)
}

pub(crate) fn acquired(span: &Span, end: WaitEnd, waited: Duration) {
    span.record("outcome", end.word());
    span.record("waited", debug(waited));
}

/// A lock that is given back, within the span of whoever does it.
pub(crate) fn release(lock: &Key) -> Span {
    tracing::info_span!("release", %lock, outcome = Empty)
}

pub(crate) fn released(span: &Span, end: ReleaseEnd) {
    span.record("outcome", end.word());
}

/// One message for so many leases. What it comes to is counted for each of them.
pub(crate) fn renewal(leases: usize) -> Span {
    tracing::debug_span!(
        "renewal",
        leases,
        renewed = Empty,
        lost = Empty,
        unknown = Empty
    )
}

/// `ends` is drawn on only where somebody listens.
pub(crate) fn renewed(span: &Span, ends: impl Iterator<Item = RenewalEnd> + Clone) {
    if span.is_disabled() {
        return;
    }
    for end in [RenewalEnd::Renewed, RenewalEnd::Lost, RenewalEnd::Unknown] {
        let count = ends.clone().filter(|it| *it == end).count();
        span.record(end.word(), count);
    }
}

/// An attempt over all members of a quorum.
pub(crate) fn round(claim: &Claim, members: usize) -> Span {
    let (lock, mode) = (&claim.key, claim.mode);
    tracing::debug_span!("round", %lock, %mode, members, outcome = Empty)
}

/// The renewal of so many leases over all members of a quorum.
pub(crate) fn round_of_renewals(leases: usize, members: usize) -> Span {
    tracing::debug_span!("renewal_round", leases, members)
}

pub(crate) fn decided(span: &Span, outcome: &'static str) {
    span.record("outcome", outcome);
}

/// What one member of a quorum answered, in a word, or why that is no answer. It is drawn up only where
/// somebody listens.
pub(crate) fn answered<'a>(
    member: &MemberId,
    outcome: impl FnOnce() -> Result<&'static str, &'a Error>,
) {
    tracing::trace!(%member, outcome = %Outcome(outcome()), "answered");
}

struct Outcome<'a>(Result<&'static str, &'a Error>);

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(word) => f.write_str(word),
            Err(error) => f.write_str(error.reason()),
        }
    }
}
