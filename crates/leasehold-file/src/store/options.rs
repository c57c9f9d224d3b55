use std::env;
use std::path::{Path, PathBuf};

use leasehold::{Error, ErrorKind};
use nix::unistd::geteuid;

use crate::directory::{Directory, Rules};
use crate::inspect::DirectoryFacts;
use crate::kernel::listener::Listener;
use crate::locking::notifications::NotificationSource;
use crate::store::FileStore;

/// Options for opening a [`FileStore`], if the defaults are not enough.
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
}

impl FileStoreOptions {
    /// Sets whether to accept any file system, even one that is not known to be local (default: no).
    /// The caller then has to know that `flock(2)` and `F_OFD_SETLK` exclude all machines,
    /// independently of each other. Otherwise the store keeps none of its promises. Waiters poll at
    /// random on such a file system, because the kernel does not report what another machine did.
    #[must_use]
    pub fn unsafe_fs(mut self, accepted: bool) -> Self {
        self.unsafe_fs = accepted;
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
        let path = default_directory(geteuid().is_root(), user_state())?;
        self.open_with(&path, true)
    }

    /// Examines `directory` as [`open`](Self::open) would find it, without making or changing
    /// anything.
    ///
    /// # Errors
    ///
    /// If it is not a path, or its file system cannot be determined. The facts cover all other
    /// obstacles to taking locks.
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

    /// Examines the default directory as [`open_default`](Self::open_default) would find it, without
    /// making or changing anything.
    ///
    /// # Errors
    ///
    /// As [`examine`](Self::examine), and if there is no default directory.
    pub fn examine_default(self) -> Result<DirectoryFacts, Error> {
        let path = default_directory(geteuid().is_root(), user_state())?;
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
        let source = match directory.file_system().is_local() {
            true if cfg!(target_os = "linux") => NotificationSource::Kernel(Listener::start),
            true => NotificationSource::None,
            false => NotificationSource::SharedFileSystem,
        };
        Ok(FileStore::new(directory, source))
    }
}

impl FileStore {
    /// Opens the store in `directory`, and makes the directory if it does not exist. A new directory
    /// is for its owner alone, or, if that is root, readable by all. This touches no lock file yet.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Unsupported`] if the directory is not known to lie on a local file system.
    /// - [`ErrorKind::Refused`] if it may not be read and written.
    /// - [`ErrorKind::InvalidInput`] if it is not a directory.
    /// - [`ErrorKind::Io`] for any other failure of the operating system.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(directory)
    }

    /// Opens the store that all programs of this user share. It is `/run/lock/leasehold` for root, and
    /// `leasehold/locks` in the user's state directory for others. On macOS these are `/var/run/leasehold`, and
    /// `leasehold/locks` in `~/Library/Application Support`.
    ///
    /// # Errors
    ///
    /// Those of [`FileStore::open`]; and [`ErrorKind::Refused`] if others may write to the directory,
    /// or it belongs to another user.
    pub fn open_default() -> Result<Self, Error> {
        Self::options().open_default()
    }

    /// Returns options, to open a store with other settings than the defaults.
    pub fn options() -> FileStoreOptions {
        FileStoreOptions::default()
    }
}

/// Returns where the user's programs keep their state: in the state directory (XDG Base Directory Specification), or
/// with their data on macOS.
fn user_state() -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "users name the directory there for all programs"
    )]
    let named = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    state_directory(named, env::home_dir())
}

/// The same for these directories. A relative one counts as none.
fn state_directory(named: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let home = home.filter(is_absolute);
    if cfg!(target_os = "macos") {
        return Some(home?.join("Library/Application Support"));
    }
    let named = named.filter(is_absolute);
    named.or_else(|| Some(home?.join(".local/state")))
}

/// The folder for the locks of the system: on Linux `/run/lock` (Filesystem Hierarchy Standard).
const SYSTEM: &str = match cfg!(target_os = "linux") {
    true => "/run/lock/leasehold",
    false => "/var/run/leasehold",
};

/// Returns where programs keep their locks.
fn default_directory(is_root: bool, state: Option<PathBuf>) -> Result<PathBuf, Error> {
    if is_root {
        return Ok(SYSTEM.into());
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

    #[cfg(target_os = "linux")]
    #[test]
    fn state_directory_is_named_or_at_home() {
        let found = |named: Option<&str>, home: Option<&str>| {
            let state = state_directory(named.map(PathBuf::from), home.map(PathBuf::from));
            state.map(|it| it.display().to_string())
        };
        let at_home = Some("/home/eva/.local/state".to_owned());
        assert_eq!(found(None, Some("/home/eva")), at_home);
        assert_eq!(found(Some("state"), Some("/home/eva")), at_home);
        assert_eq!(found(Some("/state"), None), Some("/state".to_owned()));
        assert_eq!(found(Some("state"), Some("")), None);
    }

    #[test]
    fn root_and_users_have_their_own_default() {
        let state = || Some(PathBuf::from("/home/eva/.local/state"));
        let of_root = default_directory(true, state()).unwrap();
        assert_eq!(of_root, Path::new(SYSTEM));
        let of_user = default_directory(false, state()).unwrap();
        assert_eq!(of_user, Path::new("/home/eva/.local/state/leasehold/locks"));
        let nowhere = default_directory(false, None).unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::InvalidInput);
    }
}
