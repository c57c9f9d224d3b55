//! The obligations of waiting.

pub(super) mod crowd;
pub(super) mod idle;
mod observed;
pub(super) mod outage;
pub(super) mod queue;
pub(super) mod wait;
