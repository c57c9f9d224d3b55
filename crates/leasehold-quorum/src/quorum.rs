//! The decisions of the quorum, shared with `crates/leasehold` until that crate uses the engine.
//!
//! These are the very files of `leasehold/src/quorum`. They name their imports as in that crate, and
//! [`paths`] gives them these names here.

// Each crate uses a part of them; the other crate uses the rest.
#![allow(dead_code, unused_imports)]

#[path = "../../leasehold/src/quorum/ballot/mod.rs"]
pub(crate) mod ballot;
#[path = "../../leasehold/src/quorum/tally.rs"]
pub(crate) mod tally;
#[path = "../../leasehold/src/quorum/trust/mod.rs"]
pub(crate) mod trust;

/// The modules of `leasehold` that the shared files name.
pub(crate) mod paths {
    pub(crate) mod ambient {
        pub(crate) use leasehold::ambient::*;
    }
    pub(crate) mod attempt {
        pub(crate) use leasehold::LostReason;
    }
    pub(crate) mod card {
        pub(crate) use leasehold::{Card, CardEdit, Life, MemberSet, RunId, Sighting};
    }
    pub(crate) mod clock {
        pub(crate) use leasehold::clock::{BootInstant, WallTime};
    }
    pub(crate) mod error {
        pub(crate) use leasehold::{Error, ErrorKind};
    }
    pub(crate) mod fence {
        pub(crate) use leasehold::Fence;
    }
    pub(crate) mod member {
        pub(crate) use leasehold::{Incarnation, MemberFailure, MemberId, Presence, Sample, Seal};
    }
    pub(crate) mod owner {
        pub(crate) use leasehold::{ClientId, Owner};
    }
    pub(crate) mod queue {
        pub(crate) use leasehold::Ticket;
    }
}
