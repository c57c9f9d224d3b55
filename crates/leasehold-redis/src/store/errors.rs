use leasehold::member::MemberFailure;
use leasehold::{Error, ErrorKind};

use super::RedisStore;

impl RedisStore {
    /// Returns the error with its members in the order of the store's URLs. The engine reports failures as they
    /// arrive.
    pub(super) fn in_order(&self, error: Error) -> Error {
        let position = |failure: &MemberFailure| self.member_ids().position(|id| *id == failure.id);
        if error.members().is_sorted_by_key(position) {
            return error;
        }
        let mut failures = error.members().to_vec();
        failures.sort_by_key(position);
        error.with_members(failures)
    }
}

/// The error if the engine returns the outcome of another operation.
pub(super) fn unexpected() -> Error {
    Error::new(
        ErrorKind::InvalidResponse,
        "not the outcome of what was asked",
    )
}
