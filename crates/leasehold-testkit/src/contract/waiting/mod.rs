//! The obligations of waiting.

pub(super) mod crowd;
pub(super) mod queue;
pub(super) mod wait;
