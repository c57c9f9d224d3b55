use std::path::{Path, PathBuf};

use leasehold::ambient::Ambient;
use leasehold::{Error, ErrorKind, Waiting};
use nix::unistd::geteuid;

use crate::directory::{Directory, Rules};
use crate::examine::DirectoryFacts;
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

    /// Looks at `directory` as [`open`](Self::open) would find it, and makes and changes nothing.
    ///
    /// # Errors
    ///
    /// If it is no path, or its file system cannot be found out. All that stands in the way of locks is
    /// among the facts.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_file::FileStore;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let dir = dir.path().join("locks");
    /// let found = FileStore::options().examine(&dir)?;
    /// assert!(!found.exists && found.usable.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn examine(self, directory: impl AsRef<Path>) -> Result<DirectoryFacts, Error> {
        DirectoryFacts::of(directory.as_ref(), self.rules(false))
    }

    /// Looks at the default directory as [`open_default`](Self::open_default) would find it, and makes
    /// and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`examine`](Self::examine), and if there is no default directory.
    pub fn examine_default(self) -> Result<DirectoryFacts, Error> {
        let path = default_directory(geteuid().is_root(), dirs::state_dir())?;
        DirectoryFacts::of(&path, self.rules(true))
    }

    fn rules(&self, private: bool) -> Rules {
        Rules {
            unsafe_fs: self.unsafe_fs,
            private,
        }
    }

    fn open_with(self, path: &Path, private: bool) -> Result<FileStore, Error> {
        let directory = Directory::prepare(path, self.rules(private))?;
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
