use std::io;
use std::path::Path;

use leasehold::{Error, ErrorKind};

/// "Could not `action` `path`: what the system says."
pub(crate) fn failed(action: &str, path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Refused,
        _ => ErrorKind::Io,
    };
    let message = format!("could not {action} {}: {error}", path.display());
    Error::new(kind, message).with_source(error)
}
