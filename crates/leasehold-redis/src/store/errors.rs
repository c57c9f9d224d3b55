use leasehold::{Error, ErrorKind};

use super::RedisStore;

impl RedisStore {
    /// Returns the error with its members in the order of the store's URLs. The engine reports failures as they
    /// arrive.
    pub(super) fn in_order(&self, error: Error) -> Error {
        if error.members().len() < 2 {
            return error;
        }
        let mut failures = error.members().to_vec();
        failures.sort_by_key(|failure| self.member_ids().position(|id| *id == failure.id));
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
