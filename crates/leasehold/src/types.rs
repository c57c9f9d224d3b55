//! The values of `leasehold-types`, by the name that the modules of this crate import.

pub(crate) use leasehold_types::*;

/// Returns the error of every call in a forked child of the process that owns the client.
pub(crate) fn forked() -> Error {
    Error::lost(LostReason::Forked)
}
