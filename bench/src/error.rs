use std::error::Error;
use std::path::Path;

pub(crate) use leasehold_instructions::Fallible;

/// Says which file or folder an error is about.
pub(crate) fn failed(path: &Path, error: &dyn Error) -> String {
    format!("{}: {error}", path.display())
}
