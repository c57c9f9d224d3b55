//! What must hold in every state and of every step.

use std::fmt;

use crate::state::{ModelState, Phase};
use crate::steps::{Model, Step};

/// One of the promises of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// No two guards are valid at once (I1).
    Exclusion,
    /// No later grant has a smaller fence (I2).
    FenceOrder,
    /// No later grant has the same fence (I2).
    FenceUnique,
    /// A guard that expired is never valid again (I6).
    Finality,
    /// A client frees only its own lease (I4).
    OwnRelease,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusion => "I1",
            Self::FenceOrder => "I2 (smaller)",
            Self::FenceUnique => "I2 (equal)",
            Self::Finality => "I6",
            Self::OwnRelease => "I4",
        })
    }
}

/// The property that a step breaks, if any.
#[must_use]
pub fn broken<const N: usize>(
    model: &Model,
    before: &ModelState<N>,
    step: Step,
    after: &ModelState<N>,
) -> Option<Property> {
    let valid = after.attempts.iter().filter(|a| a.phase == Phase::Valid);
    if valid.count() > 1 {
        return Some(Property::Exclusion);
    }
    match step {
        Step::Win { fence, .. } if fence < before.greatest => Some(Property::FenceOrder),
        Step::Win { fence, .. } if fence == before.greatest => Some(Property::FenceUnique),
        Step::StayValid { attempt, .. } if before.attempts[attempt].phase == Phase::Expired => {
            Some(Property::Finality)
        }
        Step::Free { attempt, member } => {
            let freed = before.members[member].lease?;
            // An owner's release is late as soon as another attempt holds the lease.
            let own = usize::from(freed.attempt) == attempt;
            let shared = model.same_owner(usize::from(freed.attempt), attempt);
            (!own && !shared).then_some(Property::OwnRelease)
        }
        _ => None,
    }
}
