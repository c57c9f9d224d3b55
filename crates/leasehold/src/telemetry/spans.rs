//! The spans of the library, and what is told within them: the names that stand in the manual.
//!
//! No field has an owner, for whoever knows one can free its lock, and none has a URL.

use std::time::Duration;

use tracing::Span;
use tracing::field::{Empty, debug};

use super::words::{ReleaseEnd, RenewalEnd, WaitEnd, Words as _};
use crate::claim::Mode;
use crate::key::Key;

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
