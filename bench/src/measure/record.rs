use serde::{Deserialize, Serialize};

/// One critical section of a waiter, in nanoseconds on the one monotonic clock of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) waiter: usize,
    /// When it asked for the lock.
    pub(crate) asked: u64,
    /// When its acquire had returned.
    pub(crate) acquired: u64,
    /// Just before it called release.
    pub(crate) releasing: u64,
}

/// All that a subject did in one run.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) sections: Vec<Section>,
    /// When each waiter asked that was still waiting at the end.
    pub(crate) pending: Vec<u64>,
    /// How often a waiter's acquire ended without the lock, and why the last time.
    pub(crate) gave_up: u64,
    pub(crate) why: String,
}

/// What the handles did during one order to cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cycled {
    pub(crate) cycles: usize,
    pub(crate) seconds: f64,
    /// In microseconds.
    pub(crate) cycle_p50: f64,
    pub(crate) cycle_p99: f64,
    pub(crate) longest: f64,
    pub(crate) failed: usize,
    pub(crate) why: String,
}

/// The memory of a process that takes many locks, in MiB.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    /// With one lock.
    pub(crate) resident_before: f64,
    /// With all.
    pub(crate) resident: f64,
}

/// How the renewals of many locks went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Renewals {
    /// The longest time between two renewals of one lock, in seconds.
    pub(crate) longest: f64,
    /// How far the deadline still was when a renewal was confirmed, in seconds.
    pub(crate) least_left: f64,
    /// How many of all the locks were lost.
    pub(crate) lost: usize,
}
