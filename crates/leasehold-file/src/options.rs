use std::path::{Path, PathBuf};

use leasehold::ambient::Ambient;
use leasehold::{Error, ErrorKind, Waiting};
use nix::unistd::geteuid;

use crate::directory::{Directory, Rules};
use crate::store::FileStore;
use crate::waits::Waits;

/// How a [`FileStore`] is opened, where the defaults are not enough.
///
/// # Examples
///
/// ```
/// use leasehold_file::FileStore;
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path().join("locks");
/// let store = FileStore::options().unsafe_fs(true).open(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FileStoreOptions {
    unsafe_fs: bool,
    ambient: Ambient,
}

impl FileStoreOptions {
    /// Whether to accept any file system, also those that are not known to be local (default:
    /// no). There the caller has to know that `flock(2)` and `F_OFD_SETLK` exclude all machines,
    /// apart from each other; nothing that the store promises holds otherwise. Waiters ask at random
    /// there, since the kernel does not tell what another machine did.
    #[must_use]
    pub fn unsafe_fs(mut self, accepted: bool) -> Self {
        self.unsafe_fs = accepted;
        self
    }

    /// Time and chance for the pauses between attempts (default: the system's).
    #[must_use]
    pub fn ambient(mut self, ambient: Ambient) -> Self {
        self.ambient = ambient;
        self
    }

    /// Opens the store in `directory`, as [`FileStore::open`] does.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::open`].
    pub fn open(self, directory: impl AsRef<Path>) -> Result<FileStore, Error> {
        self.open_with(directory.as_ref(), false)
    }

    /// Opens the store in the default directory, as [`FileStore::open_default`] does.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::open_default`].
    pub fn open_default(self) -> Result<FileStore, Error> {
        let path = default_directory(geteuid().is_root(), dirs::state_dir())?;
        self.open_with(&path, true)
    }

    fn open_with(self, path: &Path, private: bool) -> Result<FileStore, Error> {
        let rules = Rules {
            unsafe_fs: self.unsafe_fs,
            private,
        };
        let directory = Directory::prepare(path, rules)?;
        let waits = if directory.file_system().waiting() == Waiting::Notified {
            Waits::told()
        } else {
            Waits::untold()
        };
        Ok(FileStore::new(directory, waits, self.ambient))
    }
}

/// `/run/lock` is where programs of the system keep their locks (Filesystem Hierarchy Standard),
/// the state directory where those of a user do (XDG Base Directory Specification).
fn default_directory(is_root: bool, state: Option<PathBuf>) -> Result<PathBuf, Error> {
    if is_root {
        return Ok("/run/lock/leasehold".into());
    }
    let state = state.ok_or_else(|| {
        let message = "no directory for locks: neither HOME nor XDG_STATE_HOME says where the \
                       user's state is kept; name a directory";
        Error::new(ErrorKind::InvalidInput, message)
    })?;
    Ok(state.join("leasehold/locks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_users_have_their_own_default() {
        let state = || Some(PathBuf::from("/home/eva/.local/state"));
        let of_root = default_directory(true, state()).unwrap();
        assert_eq!(of_root, Path::new("/run/lock/leasehold"));
        let of_user = default_directory(false, state()).unwrap();
        assert_eq!(of_user, Path::new("/home/eva/.local/state/leasehold/locks"));
        let nowhere = default_directory(false, None).unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::InvalidInput);
    }
}
