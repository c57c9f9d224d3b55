//! What the library reports: metrics, through the [`metrics`] facade, [`tracing`] spans, and a stream of the
//! [events](LockEvents) of a client's locks.
//!
//! The library records nothing unless the program installs a recorder before it builds its stores and its
//! clients: they register their metrics once, when they are built. [`METRICS`] has all names, and
//! [`manual::observing`](crate::manual::observing) says what each one means, and which alerts are useful.
//!
//! A recorder or a subscriber that blocks stops the renewals of the client. The manual says how to avoid it.
//!
//! # Examples
//!
//! ```
//! use leasehold::telemetry::{METRICS, MetricKind};
//!
//! // Whoever installs a recorder sets its buckets by name.
//! let histograms = METRICS.iter().filter(|metric| metric.kind == MetricKind::Histogram);
//! assert!(histograms.clone().all(|metric| metric.name.ends_with("_seconds")));
//! assert!(histograms.count() > 0);
//! ```

mod client_metrics;
mod hand_overs;
mod hold_meter;
mod labels;
mod lock_events;
mod log_event;
mod member_gauges;
mod metric;
mod registry;
pub(crate) mod spans;

pub use hand_overs::HandOvers;
pub use lock_events::{LockEvent, LockEvents};
pub use log_event::LogEvent;
pub use member_gauges::MemberGauges;
pub use metric::{
    ACQUIRE_WAIT, ATTEMPTS, CONTENDED, HAND_OVER, HELD, HOLD, LOST, MEMBERS, METRICS, Metric,
    MetricKind, RELEASES, RENEWAL,
};

pub(crate) use client_metrics::ClientMetrics;
pub(crate) use hold_meter::HoldMeter;
pub(crate) use labels::{AttemptEnd, HoldEnd, ReleaseEnd, RenewalEnd, WaitEnd};
