//! The obligations of shared locks and permits.

pub(super) mod downgrade;
pub(super) mod permits;
pub(super) mod writers;
