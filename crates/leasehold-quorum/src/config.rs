//! What the engine does not know by itself: the quorum, and the time of an event.

use std::sync::Arc;

use leasehold_types::{BootInstant, Entropy, MemberSet, WallTime};

/// The present instant, by the client's two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The clock that measures leases.
    pub instant: BootInstant,
    /// The wall clock, for fences only.
    pub wall: WallTime,
}

/// What the clients of a quorum agree on.
#[derive(Debug)]
pub struct Config {
    /// The members and the limits of the quorum.
    pub set: MemberSet,
    /// Whether only trusted members have a vote. Otherwise each answer counts.
    pub enforced: bool,
    /// Whether the engine leaves the members' records alone, for tools that only read.
    pub read_only: bool,
    /// The source of random numbers.
    pub entropy: Arc<dyn Entropy>,
}
