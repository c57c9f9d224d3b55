use leasehold::{Error, ErrorKind};

/// The error if the engine returns the outcome of another operation.
pub(super) fn unexpected() -> Error {
    Error::new(
        ErrorKind::InvalidResponse,
        "not the outcome of what was asked",
    )
}
