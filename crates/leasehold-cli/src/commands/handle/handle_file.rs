use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use leasehold::Handle;
use leasehold::clock::{Clock as _, SystemClock};

use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// A file for a handle. A draft with another name exists from the start, so that only the disk can fail
/// later. It gets its own name when the handle is complete, so that no reader sees a part.
pub(super) struct HandleFile {
    path: PathBuf,
    draft: PathBuf,
    file: File,
}

impl HandleFile {
    pub(super) fn prepare(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| cannot_write(path, &error);
        let Some(name) = path.file_name() else {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(failed(error));
        };
        // A rename would fail only after the lock is held.
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut draft = name.to_owned();
        // Containers reuse process ids, and a killed process leaves its draft.
        let now = SystemClock.now().as_nanos();
        draft.push(format!(".{}-{now}.new", process::id()));
        let draft = path.with_file_name(draft);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(ONLY_ITS_OWNER);
        let file = options.open(&draft).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            draft,
            file,
        })
    }

    /// Writes the handle to the file, replaces the old content, and returns the path.
    pub(super) fn keep(mut self, handle: &Handle) -> Result<PathBuf, Failure> {
        let text = format!("{}\n", handle.reveal());
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| fs::rename(&self.draft, &self.path))
            .map(|()| self.path.clone())
            .map_err(|error| cannot_write(&self.path, &error))
    }
}

impl Drop for HandleFile {
    fn drop(&mut self) {
        // Already gone if the handle was kept.
        let _ = fs::remove_file(&self.draft);
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot write {}: {error}", path.display());
    Failure::new(ExitCode::IO, text)
}

const ONLY_ITS_OWNER: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftover_draft_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handle");
        let left = HandleFile::prepare(&path).map_err(|failure| failure.to_string());
        let next = HandleFile::prepare(&path).map_err(|failure| failure.to_string());
        assert_ne!(left.unwrap().draft, next.unwrap().draft);
    }
}
