//! Facts about a lock directory for an operator, without a judgement.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use leasehold::{Error, ErrorKind, Key};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::statvfs::statvfs;
use nix::unistd::AccessFlags;

use crate::directory::{Directory, Rules, require_access};
use crate::failure::failed;
use crate::format::file_name::{self, Named};
use crate::format::header::{self, Damage};
use crate::inspect::listing;
use crate::kernel::file_system::FileSystem;
use crate::kernel::lock_file;
use crate::locking::contents::read_header;

/// What an examination of a lock directory found. It made and changed nothing there.
#[derive(Clone, Debug)]
pub struct DirectoryFacts {
    /// The directory.
    pub path: PathBuf,
    /// Whether it exists; the first lock makes it.
    pub exists: bool,
    /// Whether locks can be taken in it. The error is what opening the store returns, or would
    /// return.
    pub usable: Result<(), Error>,
    /// The kind of its file system, or of the one it would be made on.
    pub file_system: String,
    /// Whether that file system is known to be local to this machine.
    pub is_local: bool,
    /// Whether the fence counters survive the next boot.
    pub outlives_a_boot: bool,
    /// Its user id and its permissions.
    pub owner: Option<(u32, u32)>,
    /// Whether two opened descriptors of it exclude each other by `flock`; `None` while it does not
    /// exist.
    pub flock: Option<Result<(), Error>>,
    /// How many bytes and how many files can still be written there.
    pub room: Result<(u64, u64), Error>,
    /// How many lock files there are, and how many of these locks are held.
    pub locks: Result<(usize, usize), Error>,
    /// The names of unusable lock files: they are damaged, not readable, or not regular files.
    pub damaged: Vec<String>,
}

impl DirectoryFacts {
    pub(crate) fn of(path: &Path, rules: Rules) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(|error| {
            let message = format!("lock directory {path:?} is no path: {error}");
            Error::new(ErrorKind::InvalidInput, message)
        })?;
        let existing = path.ancestors().find(|path| path.exists());
        let existing = existing.unwrap_or(Path::new("/"));
        let file_system = FileSystem::of(existing)
            .map_err(|error| failed("find the file system of", existing, error))?;
        let exists = fs::symlink_metadata(&path).is_ok();
        let opened = if exists {
            // Only looks at a directory that exists.
            Directory::prepare(&path, rules).map(Some)
        } else {
            may_make(&path, existing, file_system, rules).map(|()| None)
        };
        let mut damaged = Vec::new();
        let locks = match &opened {
            Ok(Some(directory)) => count(directory, &mut damaged),
            _ => Ok((0, 0)),
        };
        damaged.sort_unstable();
        Ok(Self {
            exists,
            usable: opened.map(drop),
            file_system: file_system.name(),
            is_local: file_system.is_local(),
            outlives_a_boot: file_system.outlives_a_boot(),
            // Of the directory itself if the path is a link to one: the permissions of a link mean
            // nothing.
            owner: fs::metadata(&path)
                .ok()
                .map(|about| (about.uid(), about.mode() & 0o7777)),
            flock: path.is_dir().then(|| {
                let excludes = excludes(&path);
                excludes.map_err(|error| failed("lock", &path, error))
            }),
            room: room(existing).map_err(|error| failed("find the room at", existing, error)),
            locks,
            damaged,
            path,
        })
    }
}

/// Checks whether the directory could be made below `existing`.
fn may_make(path: &Path, existing: &Path, on: FileSystem, rules: Rules) -> Result<(), Error> {
    if !rules.unsafe_fs {
        on.require_local(path)?;
    }
    let refused = |error| failed("make the lock directory below", existing, error);
    if !existing.is_dir() {
        return Err(refused(io::ErrorKind::NotADirectory.into()));
    }
    let usable = AccessFlags::W_OK | AccessFlags::X_OK;
    require_access(existing, usable).map_err(refused)
}

/// Checks `flock` by locking the directory itself for a moment, which no lock of this store does.
fn excludes(path: &Path) -> io::Result<()> {
    let lock = || Flock::lock(File::open(path)?, FlockArg::LockExclusiveNonblock).map_err(of_flock);
    let first = match lock() {
        // Another examination has the lock at this moment.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        first => first?,
    };
    let second = lock();
    drop(first);
    match second {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::other("two have it at the same time")),
    }
}

fn of_flock((_, errno): (File, Errno)) -> io::Error {
    errno.into()
}

fn room(path: &Path) -> io::Result<(u64, u64)> {
    let found = statvfs(path)?;
    // The types of the fields differ between platforms.
    let bytes = (found.blocks_available() as u64).saturating_mul(found.fragment_size() as u64);
    // A file system without a table of files says that it has none at all.
    let files = match found.files() {
        0 => u64::MAX,
        _ => found.files_available() as u64,
    };
    Ok((bytes, files))
}

fn count(directory: &Directory, damaged: &mut Vec<String>) -> Result<(usize, usize), Error> {
    let failed = |error| failed("read the lock directory", directory.path(), error);
    let mut files = 0;
    for entry in fs::read_dir(directory.path()).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let key = match file_name::parse(name) {
            Named::Foreign => continue,
            Named::Key(key) => Some(key),
            Named::Hash => None,
        };
        files += 1;
        let path = directory.path().join(name);
        // A file that cannot be read, perhaps of another user, is of no use either.
        if is_damaged(&path, key.as_ref()).unwrap_or(true) {
            damaged.push(name.to_owned());
        }
    }
    let (held, _) = listing::held_keys(directory, "")?;
    Ok((files, held.len()))
}

/// Returns whether no lock can be acquired with this file. A file of a later version is not damaged.
fn is_damaged(path: &Path, key: Option<&Key>) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Ok(true),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (Some(key), Some(file)) = (key, lock_file::open_to_read(path)?) else {
        return Ok(false);
    };
    let counter = header::read(&read_header(&file)?, key);
    Ok(matches!(counter, Err(Damage::NoSlot | Damage::OtherKey)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn look(path: &Path) -> DirectoryFacts {
        DirectoryFacts::of(path, Rules::default()).unwrap()
    }

    #[test]
    fn examining_creates_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let found = look(&path);
        assert!(found.usable.is_ok() && !found.exists, "{found:?}");
        assert!(found.flock.is_none() && found.owner.is_none());
        assert_eq!(found.locks.unwrap(), (0, 0));
        assert!(found.room.unwrap().0 > 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn damaged_lock_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
        write("new.lock", b"");
        let key = Key::new("good").unwrap();
        write("good.lock", &header::fresh(&key, 7));
        write("renamed.lock", &header::fresh(&key, 7));
        write("random.lock", &[0x5a; 300]);
        fs::create_dir(dir.path().join("folder.lock")).unwrap();
        std::os::unix::fs::symlink("good.lock", dir.path().join("link.lock")).unwrap();
        let found = look(dir.path());
        assert_eq!(found.locks.unwrap(), (6, 0));
        let damaged = ["folder.lock", "link.lock", "random.lock", "renamed.lock"];
        assert_eq!(found.damaged, damaged);
    }

    #[test]
    fn examining_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o750)).unwrap();
        let before = fs::metadata(dir.path()).unwrap();
        let found = look(dir.path());
        assert!(found.exists && found.usable.is_ok(), "{found:?}");
        assert!(found.flock.unwrap().is_ok());
        assert_eq!(found.owner.unwrap().1, 0o750);
        let after = fs::metadata(dir.path()).unwrap();
        assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    }

    #[test]
    fn ownership_is_checked_behind_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let found = look(&link);
        assert!(found.exists && found.usable.is_ok(), "{found:?}");
        assert_eq!(found.owner.unwrap().1, 0o750);
        fs::remove_dir(&real).unwrap();
        let dangling = look(&link);
        assert!(dangling.exists && dangling.owner.is_none(), "{dangling:?}");
    }

    #[test]
    fn what_opening_would_refuse_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("below")] {
            assert!(look(&path).usable.is_err(), "{path:?}");
        }
        let found = look(Path::new("/proc/locks.d"));
        let error = found.usable.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!((&*found.file_system, found.is_local), ("procfs", false));
    }

    #[test]
    fn unlimited_file_system_has_room() {
        // As on some that grow by themselves; this one has no table at all.
        assert_eq!(statvfs("/proc").unwrap().files(), 0);
        assert_eq!(room(Path::new("/proc")).unwrap().1, u64::MAX);
    }

    #[test]
    fn only_lock_files_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["README", "x.lock.orig", ".hidden"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(look(dir.path()).locks.unwrap(), (0, 0));
    }

    #[test]
    fn existing_directory_lock_proves_flock_works() {
        let dir = tempfile::tempdir().unwrap();
        let other = File::open(dir.path()).unwrap();
        let held = Flock::lock(other, FlockArg::LockExclusiveNonblock).unwrap();
        excludes(dir.path()).unwrap();
        drop(held);
        excludes(dir.path()).unwrap();
    }
}
