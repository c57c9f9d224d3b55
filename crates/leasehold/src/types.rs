//! The values of `leasehold-types`, under the name by which this crate imports them.

pub(crate) use leasehold_types::*;

/// Returns the error of every call in a forked child of the process that owns the client.
pub(crate) fn forked() -> Error {
    Error::lost(LostReason::Forked)
}
