//! The spans of the library and their fields, with the names that the manual lists.
//!
//! No field contains an owner, since an owner is enough to release its lock, and none contains a URL.

use std::time::Duration;

use tracing::Span;
use tracing::field::{Empty, debug};

use super::labels::{LabelValue as _, ReleaseEnd, RenewalEnd, WaitEnd};
use crate::types::{Key, Mode};

/// A call of `acquire` or `try_acquire`, within the span of its caller.
pub(crate) fn acquire(lock: &Key, mode: Mode) -> Span {
    tracing::info_span!("acquire", %lock, %mode, outcome = Empty, waited = Empty)
}

pub(crate) fn acquired(span: &Span, end: WaitEnd, waited: Duration) {
    span.record("outcome", end.value());
    span.record("waited", debug(waited));
}

/// The release of a lock, within the span of the code that releases it.
pub(crate) fn release(lock: &Key) -> Span {
    tracing::info_span!("release", %lock, outcome = Empty)
}

pub(crate) fn released(span: &Span, end: ReleaseEnd) {
    span.record("outcome", end.value());
}

/// One message that renews `leases` leases. The outcome is counted for each of them.
pub(crate) fn renewal(leases: usize) -> Span {
    tracing::debug_span!(
        "renewal",
        leases,
        renewed = Empty,
        lost = Empty,
        unknown = Empty
    )
}

/// Consumes `ends` only if the span is enabled.
pub(crate) fn renewed(span: &Span, ends: impl Iterator<Item = RenewalEnd> + Clone) {
    if span.is_disabled() {
        return;
    }
    for end in [RenewalEnd::Renewed, RenewalEnd::Lost, RenewalEnd::Unknown] {
        let count = ends.clone().filter(|it| *it == end).count();
        span.record(end.value(), count);
    }
}
