use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::Mode;
use leasehold::store::background::Process;
use nix::libc;

use crate::kernel::whole_lock;

/// A file that this process holds. Dropping it frees the lock.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    path: PathBuf,
    freed: AtomicBool,
    /// Another owner may have the descriptor too, so closing ours may not be the last close.
    is_shared_out: AtomicBool,
    holder: Process,
}

/// The result of an attempt to lock an open file.
#[derive(Debug)]
pub(crate) enum Locking {
    Won(LockFile),
    /// It is held already; the file serves to find the holder.
    Busy(File),
    /// The file is no longer the one under its name, so the lock on it excludes nothing.
    Replaced,
}

/// Opens the lock file at `path`, and makes it if it does not exist.
///
/// It never follows a symbolic link, and never waits for the other end of a pipe. An existing file
/// is opened without `O_CREAT`, which the kernel refuses for another user's file in a sticky
/// directory (`fs.protected_regular`).
pub(crate) fn open(path: &Path, mode_of_new: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = options.create_new(true).mode(mode_of_new).open(path)?;
            // The umask must not take a lock away from users who may make locks here.
            file.set_permissions(fs::Permissions::from_mode(mode_of_new))?;
            file
        }
        result => result?,
    };
    require_regular(&file)?;
    Ok(file)
}

/// Opens the lock file at `path` for reading; `None` if it does not exist.
pub(crate) fn open_to_read(path: &Path) -> io::Result<Option<File>> {
    open_existing(path, OpenOptions::new().read(true))
}

/// Opens the lock file at `path` for reading and locking; `None` if it does not exist.
pub(crate) fn open_to_lock(path: &Path) -> io::Result<Option<File>> {
    open_existing(path, OpenOptions::new().read(true).write(true))
}

fn open_existing(path: &Path, options: &mut OpenOptions) -> io::Result<Option<File>> {
    let opened = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(file) => require_regular(&file).map(|()| Some(file)),
    }
}

/// Tries to take the lock on `file`, opened at `path`. Never waits.
///
/// Between opening and locking, another process may have removed or replaced the file. Then two
/// processes could each hold "the" lock, one of them on a file without a name. So this function looks
/// up the name again once it has the lock.
pub(crate) fn lock(file: File, path: &Path, mode: Mode) -> io::Result<Locking> {
    if !whole_lock::try_lock(&file, mode)? {
        return Ok(Locking::Busy(file));
    }
    let won = LockFile {
        file,
        path: path.to_owned(),
        freed: AtomicBool::new(false),
        is_shared_out: AtomicBool::new(false),
        holder: Process::current(),
    };
    Ok(if won.is_under_its_name()? {
        Locking::Won(won)
    } else {
        Locking::Replaced
    })
}

impl LockFile {
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns another descriptor of the same lock.
    pub(crate) fn share(&self) -> io::Result<File> {
        self.is_shared_out.store(true, Ordering::Release);
        self.file.try_clone()
    }

    /// Returns whether the lock still excludes others: it is not freed, and a newcomer would open its
    /// file.
    pub(crate) fn still_excludes(&self) -> io::Result<bool> {
        Ok(!self.freed.load(Ordering::Acquire) && self.is_under_its_name()?)
    }

    /// Frees the lock, once. It unlocks explicitly and does not rely on closing the file: a child of
    /// this process may have inherited the descriptor, and would keep the lock. In such a child this
    /// function does nothing, because the lock is still the parent's.
    pub(crate) fn free(&self) {
        if !self.holder.is_current() || self.freed.swap(true, Ordering::AcqRel) {
            return;
        }
        // It cannot fail on a valid descriptor, and closing it frees the lock all the same.
        let _ = whole_lock::unlock(&self.file);
        if self.is_shared_out.load(Ordering::Acquire) {
            // The last close may happen elsewhere.
            self.tell_waiters();
        }
    }

    /// Frees the lock, and leaves the file open. Does not notify waiters.
    pub(crate) fn back_off(&self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        self.free();
        Ok(file)
    }

    /// Converts the exclusive lock to a shared one; `false` if the kernel gave the lock away over
    /// that.
    ///
    /// The kernel exchanges one lock for the other in one step (`flock_lock_inode`, since Linux 4.0).
    /// No other process gets in between, and without other holders the kernel cannot refuse.
    pub(crate) fn downgrade(&self) -> io::Result<bool> {
        let converted = whole_lock::try_lock(&self.file, Mode::Shared)?;
        if converted {
            self.tell_waiters();
        }
        Ok(converted)
    }

    /// Closes the file once, which makes the kernel notify its waiters. The kernel does not report
    /// changes to a lock whose file stays open.
    fn tell_waiters(&self) {
        // If this fails, they find out by themselves, later.
        let _ = open_to_read(&self.path);
    }

    fn is_under_its_name(&self) -> io::Result<bool> {
        is_under_its_name(&self.file, &self.path)
    }
}

/// Returns whether a newcomer that opens `path` would open this very file.
pub(crate) fn is_under_its_name(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
        Ok(named) => Ok(ours.nlink() > 0 && (ours.dev(), ours.ino()) == (named.dev(), named.ino())),
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        self.free();
    }
}

fn require_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a regular file",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens the window between opening and locking by hand.
    #[test]
    fn replaced_file_is_not_locked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deploy.lock");
        let early = open(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let removed = lock(early, &path, Mode::Exclusive).unwrap();
        assert!(matches!(removed, Locking::Replaced), "{removed:?}");

        let early = open(&path, 0o600).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "").unwrap();
        fs::rename(&other, &path).unwrap();
        let replaced = lock(early, &path, Mode::Shared).unwrap();
        assert!(matches!(replaced, Locking::Replaced), "{replaced:?}");

        let file = open(&path, 0o600).unwrap();
        let untouched = lock(file, &path, Mode::Exclusive).unwrap();
        assert!(matches!(untouched, Locking::Won(_)), "{untouched:?}");
    }

    #[test]
    fn lock_is_valid_until_freed_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deploy.lock");
        let win = || match lock(open(&path, 0o600).unwrap(), &path, Mode::Exclusive).unwrap() {
            Locking::Won(won) => won,
            other => panic!("{other:?}"),
        };
        let won = win();
        assert!(won.still_excludes().unwrap());
        won.free();
        assert!(!won.still_excludes().unwrap());
        let next = win();
        won.free();
        assert!(next.still_excludes().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!next.still_excludes().unwrap());
    }

    #[test]
    fn links_pipes_and_folders_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "").unwrap();
        let link = dir.path().join("link.lock");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let pipe = dir.path().join("pipe.lock");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&link, &pipe, &dir.path().to_owned()] {
            assert!(open(path, 0o600).is_err(), "{}", path.display());
            assert!(open_to_read(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn new_file_has_the_given_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deploy.lock");
        let file = open(&path, 0o666).unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
    }
}
