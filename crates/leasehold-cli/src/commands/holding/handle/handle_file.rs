use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::handle::Handle;
use leasehold::store::rough_span;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::commands::holding::handle::handle_source::limited;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// A file for a handle. A draft with another name exists from the start, so that only the disk can fail
/// later. It gets its own name when the handle is complete, so that no reader sees a part.
pub(crate) struct HandleFile {
    path: PathBuf,
    draft: PathBuf,
    file: File,
}

impl HandleFile {
    /// Prepares a file for a new handle. Refuses one with a handle that is still valid: without it, that
    /// lock could not be released.
    pub(super) fn prepare_new(path: &Path) -> Result<Self, Failure> {
        // A pipe or a device could be read without end.
        let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
        let known = is_file.then(|| limited(File::open(path)?));
        let known: Option<Handle> = known
            .and_then(io::Result::ok)
            .and_then(|text| text.trim().parse().ok());
        let left = known.as_ref().and_then(Handle::deadline);
        let left = left.map_or(Duration::ZERO, |end| end.since(SystemClock.now()));
        match known {
            Some(handle) if !left.is_zero() => Err(Failure::usage(format!(
                "{} has the handle of lock {:?}, which is valid for {}; release that lock first, \
                 or name another file",
                path.display(),
                handle.key().as_str(),
                rough_span(left)
            ))),
            _ => Self::prepare(path),
        }
    }

    pub(crate) fn prepare(path: &Path) -> Result<Self, Failure> {
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
    pub(crate) fn keep(mut self, handle: &Handle) -> Result<PathBuf, Failure> {
        self.write(handle)
            .and_then(|()| fs::rename(&self.draft, &self.path))
            .map(|()| self.path.clone())
            .map_err(|error| cannot_write(&self.path, &error))
    }

    /// Writes the renewed handle to the file, unless another process has removed the file, or has put the handle of another
    /// lease there. Returns whether the file has the handle.
    pub(super) fn replace(mut self, handle: &Handle) -> Result<bool, Failure> {
        let (path, draft) = (self.path.clone(), self.draft.clone());
        let failed = |error: io::Error| cannot_write(&path, &error);
        self.write(handle).map_err(failed)?;
        match self.exchange() {
            // The draft now has what was in the file.
            Ok(()) if has_handle_of(&draft, handle) => Ok(true),
            Ok(()) => self
                .exchange()
                .map(|()| false)
                .map_err(|errno| failed(errno.into())),
            Err(Errno::NOENT) => Ok(false),
            // Some file systems, such as NFS, cannot exchange names.
            Err(Errno::INVAL | Errno::NOTSUP) if path.exists() => {
                fs::rename(&draft, &path).map(|()| true).map_err(failed)
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Exchanges the draft and the file, if both are there.
    fn exchange(&self) -> Result<(), Errno> {
        renameat_with(CWD, &self.draft, CWD, &self.path, RenameFlags::EXCHANGE)
    }

    fn write(&mut self, handle: &Handle) -> io::Result<()> {
        let text = format!("{}\n", handle.reveal());
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for HandleFile {
    fn drop(&mut self) {
        // Already gone if the handle was kept.
        let _ = fs::remove_file(&self.draft);
    }
}

/// Returns whether the file has a handle of the same lease.
fn has_handle_of(path: &Path, handle: &Handle) -> bool {
    let text = File::open(path).and_then(limited);
    let known: Option<Handle> = text.ok().and_then(|text| text.trim().parse().ok());
    known.is_some_and(|known| is_same_lease(&known, handle))
}

/// Returns whether two handles are of one lease, perhaps with different deadlines.
pub(super) fn is_same_lease(one: &Handle, other: &Handle) -> bool {
    one.key() == other.key() && one.fence() == other.fence()
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot write {}: {error}", path.display());
    Failure::new(ExitCode::IO, text)
}

pub(super) const ONLY_ITS_OWNER: u32 = 0o600;

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn file_with_a_valid_handle_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handle");
        let prepare = || HandleFile::prepare_new(&path).map_err(|failure| failure.to_string());
        let locks = leasehold::blocking::Client::new(leasehold::memory::MemoryStore::new());
        let guard = locks.lock("deploy").acquire().unwrap();
        let handle = guard.into_handle().unwrap();
        let file = prepare().unwrap();
        file.keep(&handle)
            .map_err(|failure| failure.to_string())
            .unwrap();
        let refusal = prepare().err().unwrap();
        assert!(
            refusal.contains("has the handle of lock \"deploy\", which is valid for"),
            "{refusal}"
        );
        assert!(!refusal.contains(&handle.reveal()), "{refusal}");
        fs::write(&path, "no handle").unwrap();
        assert!(prepare().is_ok());
    }

    #[test]
    fn renewed_handle_replaces_none_of_another_lease() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handle");
        let file = || HandleFile::prepare(&path).map_err(|failure| failure.to_string());
        let locks = leasehold::blocking::Client::new(leasehold::memory::MemoryStore::new());
        let acquire = || {
            let guard = locks.lock("deploy").acquire().unwrap();
            guard.into_handle().unwrap()
        };
        let old = acquire();
        let replace = |handle| {
            let replaced = file().unwrap().replace(handle);
            replaced.map_err(|failure| failure.to_string()).unwrap()
        };
        assert!(!replace(&old), "there is no file");
        fs::write(&path, old.reveal()).unwrap();
        assert!(replace(&old));
        locks.release(&old).unwrap();
        let new = acquire();
        fs::write(&path, new.reveal()).unwrap();
        assert!(!replace(&old));
        assert_eq!(fs::read_to_string(&path).unwrap(), new.reveal());
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no draft is left"
        );
    }

    #[test]
    fn pipe_in_place_of_a_handle_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        let (done, outcome) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = done.send(HandleFile::prepare_new(&path).is_ok());
            });
            let outcome = outcome.recv_timeout(Duration::from_secs(30));
            // Lets a reader go on, if there is one.
            drop(OpenOptions::new().read(true).write(true).open(&path));
            assert_eq!(outcome, Ok(true));
        });
    }

    #[test]
    fn leftover_draft_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handle");
        let left = HandleFile::prepare(&path).map_err(|failure| failure.to_string());
        let next = HandleFile::prepare(&path).map_err(|failure| failure.to_string());
        assert_ne!(left.unwrap().draft, next.unwrap().draft);
    }
}
