//! The table of all metrics: the one place that names them.

use super::labels::{
    AttemptEnd, HoldEnd, LabelValue as _, Loss, ReleaseEnd, RenewalEnd, VoteState, WaitEnd,
};

/// One metric of the library. Each has the label `store`: the name of the store, as
/// `Display` of the [`Client`](crate::Client) shows it, without credentials. None has the name of a
/// lock as a label: there may be any number of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name, in the form that Prometheus expects.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: MetricKind,
    /// The other label, if it has one, with all its values.
    pub label: Option<(&'static str, &'static [&'static str])>,
    /// What it measures, in a sentence.
    pub description: &'static str,
}

/// The kind of a [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Durations, in seconds.
    Histogram,
    /// How often something happened since the process started.
    Counter,
    /// How many there are now.
    Gauge,
}

/// How long callers waited for locks.
pub const ACQUIRE_WAIT: Metric = Metric {
    name: "leasehold_acquire_wait_seconds",
    kind: MetricKind::Histogram,
    label: Some(("outcome", WaitEnd::VALUES)),
    description: "From the call of acquire or try_acquire to its outcome",
};

/// How many attempts to take a lock there were. A wait is one attempt, until it fails.
pub const ATTEMPTS: Metric = Metric {
    name: "leasehold_attempts_total",
    kind: MetricKind::Counter,
    label: Some(("outcome", AttemptEnd::VALUES)),
    description: "Attempts to take a lock; a wait is one, until the store fails",
};

/// How many calls found their lock busy.
pub const CONTENDED: Metric = Metric {
    name: "leasehold_contended_total",
    kind: MetricKind::Counter,
    label: None,
    description: "Calls of acquire or try_acquire that found the lock held by another owner at least once",
};

/// How long hand-overs took.
pub const HAND_OVER: Metric = Metric {
    name: "leasehold_hand_over_seconds",
    kind: MetricKind::Histogram,
    label: None,
    description: "From a server's first notification that it is the waiter's turn to its grant",
};

/// How many guards are valid.
pub const HELD: Metric = Metric {
    name: "leasehold_held",
    kind: MetricKind::Gauge,
    label: None,
    description: "Locks and permits that are held now",
};

/// How long locks were held.
pub const HOLD: Metric = Metric {
    name: "leasehold_hold_seconds",
    kind: MetricKind::Histogram,
    label: Some(("end", HoldEnd::VALUES)),
    description: "From the request that was granted to the release, or to the loss if that came first",
};

/// How many guards were lost.
pub const LOST: Metric = Metric {
    name: "leasehold_lost_total",
    kind: MetricKind::Counter,
    label: Some(("reason", Loss::VALUES)),
    description: "Guards that were lost before they were released",
};

/// The state of a quorum's members.
pub const MEMBERS: Metric = Metric {
    name: "leasehold_members",
    kind: MetricKind::Gauge,
    label: Some(("state", VoteState::VALUES)),
    description: "Members of the store, by their last answer",
};

/// How releases ended.
pub const RELEASES: Metric = Metric {
    name: "leasehold_releases_total",
    kind: MetricKind::Counter,
    label: Some(("outcome", ReleaseEnd::VALUES)),
    description: "Locks that were released, including dropped ones",
};

/// How long renewals took.
pub const RENEWAL: Metric = Metric {
    name: "leasehold_renewal_seconds",
    kind: MetricKind::Histogram,
    label: Some(("outcome", RenewalEnd::VALUES)),
    description: "From the sending of a renewal to its outcome, for each lease in the message",
};

/// All metrics, in the order of their names.
pub const METRICS: &[Metric] = &[
    ACQUIRE_WAIT,
    ATTEMPTS,
    CONTENDED,
    HAND_OVER,
    HELD,
    HOLD,
    LOST,
    MEMBERS,
    RELEASES,
    RENEWAL,
];
