use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use leasehold::{Error, ErrorKind};

/// The greatest size of a file with certificates or a password, so that `/dev/zero` is an error.
const BYTES_MAX: u64 = 1 << 20;

/// Returns the bytes of the file that a parameter names.
pub(crate) fn read(parameter: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(|file| {
        let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if read as u64 > BYTES_MAX {
            let text = format!("it has more than {BYTES_MAX} bytes");
            return Err(io::Error::other(text));
        }
        Ok(())
    });
    opened.map_err(|error| unusable(parameter, path, &error))?;
    Ok(bytes)
}

/// Returns the error for a file that a parameter names.
pub(crate) fn unusable(parameter: &str, path: &Path, rule: &dyn std::fmt::Display) -> Error {
    let text = format!("`{parameter}` file {}: {rule}", path.display());
    Error::new(ErrorKind::InvalidInput, text)
}
