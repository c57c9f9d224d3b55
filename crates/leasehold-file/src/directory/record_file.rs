//! The file of a record, next to the lock file: read and replaced under a short lock of its own.
//!
//! The lock is that on the file itself. A process that replaces the file holds the lock on the old
//! file until the change has reached the disk. It also holds the lock on the new file before that has its
//! name. So no reader sees a change that a power failure could take back.
//!
//! A file of another user in a sticky directory cannot be replaced, only overwritten. Then the new file stays
//! next to it until the old one is overwritten and on the disk. If that is interrupted, the checksum of the old
//! file is wrong, and the new file has the record.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use leasehold::clock::WallTime;
use leasehold::store::Reading;
use leasehold::{Error, ErrorKind, Key, Mode};

use crate::directory::Directory;
use crate::failure::failed;
use crate::format::record::{self, Content, Damage};
use crate::kernel::lock_file::{self, LockFile, Locking};
use crate::kernel::whole_lock;

/// The outcome of a try.
#[derive(Debug)]
pub(crate) enum Tried<T> {
    Done(T),
    /// Another process was using the file.
    Later,
}

/// Reads the record of `key`.
pub(crate) fn read(
    directory: &Directory,
    key: &Key,
    now: WallTime,
) -> Result<Tried<Reading>, Error> {
    let path = path_of(directory, key);
    let failed = |error| failed("read the record", &path, error);
    let Some(file) = lock_file::open_to_read(&path).map_err(failed)? else {
        return Ok(Tried::Done(Reading::settled(None)));
    };
    let Locking::Won(lock) = lock_file::lock(file, &path, Mode::Shared).map_err(failed)? else {
        return Ok(Tried::Later);
    };
    let StoredRecord { content, .. } = find(&lock, key)?;
    Ok(Tried::Done(content.read(now)))
}

/// Applies `change` to the record of `key`, and returns its answer once the change is on the disk.
pub(crate) fn change<T>(
    directory: &Directory,
    key: &Key,
    change: impl FnOnce(&mut Content) -> T,
) -> Result<Tried<T>, Error> {
    let path = path_of(directory, key);
    let failed = |error| failed("open the record", &path, error);
    let file = match lock_file::open(&path, directory.mode_of_files()) {
        // Another process made it a moment ago.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Tried::Later),
        opened => opened.map_err(failed)?,
    };
    let Locking::Won(lock) = lock_file::lock(file, &path, Mode::Exclusive).map_err(failed)? else {
        return Ok(Tried::Later);
    };
    let StoredRecord {
        content: before,
        interrupted,
    } = find(&lock, key)?;
    if let Some(bytes) = interrupted {
        // Before the next new file takes the place of the only whole copy.
        overwrite(lock.file(), &bytes)
            .map_err(|error| self::failed("repair the record", &path, error))?;
    }
    let mut after = before.clone();
    let answer = change(&mut after);
    if after != before {
        replace(directory, &lock, &record::encode(&after, key))?;
    }
    Ok(Tried::Done(answer))
}

/// Removes expired records, because names are often used only once. It checks a few records of the
/// directory, which `chance` picks, and leaves what it cannot remove to the next sweep.
pub(crate) fn sweep(directory: &Directory, chance: u64, now: WallTime) {
    let Ok(entries) = fs::read_dir(directory.path()) else {
        return;
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "record");
    let paths: Vec<PathBuf> = paths.filter(is_record).collect();
    if paths.is_empty() {
        return;
    }
    let first = (chance % paths.len() as u64) as usize;
    let few = paths.len().min(SWEPT_AT_ONCE);
    for path in paths.iter().cycle().skip(first).take(few) {
        let _ = remove_if_over(path, now);
    }
}

/// Removes the record at `path` if it is over. A process that has the file open already finds, once
/// it has the lock, that the file no longer has a name.
fn remove_if_over(path: &Path, now: WallTime) -> io::Result<()> {
    let Some(file) = lock_file::open_to_lock(path)? else {
        return Ok(());
    };
    let Locking::Won(lock) = lock_file::lock(file, path, Mode::Exclusive)? else {
        return Ok(());
    };
    let mut bytes = Vec::new();
    lock.file().read_to_end(&mut bytes)?;
    if record::decode(&bytes, None).is_ok_and(|content| content.is_over(now)) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The content of a record file.
struct StoredRecord {
    content: Content,
    /// The bytes of the new file, if overwriting the old one was interrupted.
    interrupted: Option<Vec<u8>>,
}

fn find(lock: &LockFile, key: &Key) -> Result<StoredRecord, Error> {
    let failed = |error| failed("read the record", lock.path(), error);
    let bytes = read_whole(lock.file()).map_err(failed)?;
    let damage = match record::decode(&bytes, Some(key)) {
        Ok(content) => {
            return Ok(StoredRecord {
                content,
                interrupted: None,
            });
        }
        Err(damage) => damage,
    };
    if damage == Damage::Broken
        && let Some(new) = lock_file::open_to_read(&new_path(lock.path())).map_err(failed)?
    {
        let bytes = read_whole(&new).map_err(failed)?;
        // An empty one is left behind by a user who could not remove it.
        if !bytes.is_empty()
            && let Ok(content) = record::decode(&bytes, Some(key))
        {
            return Ok(StoredRecord {
                content,
                interrupted: Some(bytes),
            });
        }
    }
    Err(damaged(lock.path(), damage))
}

fn read_whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts `bytes` in the place of the file that the caller has locked.
fn replace(directory: &Directory, lock: &LockFile, bytes: &[u8]) -> Result<(), Error> {
    let path = lock.path();
    let new = new_path(path);
    let written = write_new(&new, bytes, directory.mode_of_files());
    let new_file = match written {
        Ok(written) => written,
        Err(error) => {
            // A partial new file would only take up room; the record is as it was.
            let _ = fs::remove_file(&new);
            return Err(failed("write the record", &new, error));
        }
    };
    match fs::rename(&new, path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return overwrite_others(directory, lock, &new, bytes).map_err(|error| {
                failed("overwrite the record", path, error).with_unknown_effect()
            });
        }
        Err(error) => {
            let _ = fs::remove_file(&new);
            return Err(failed("put in place the record", path, error));
        }
        Ok(()) => {}
    }
    let synced = directory
        .sync()
        .map_err(|error| failed("keep the name of the record", path, error).with_unknown_effect());
    // Only now may others read it. Closing is not enough: a process started meanwhile may share the
    // descriptor.
    let _ = whole_lock::unlock(&new_file);
    synced
}

/// Overwrites the file of another user. `new` is the same content, on the disk.
fn overwrite_others(
    directory: &Directory,
    lock: &LockFile,
    new: &Path,
    bytes: &[u8],
) -> io::Result<()> {
    // The name of the new file must outlive a power failure before the old file is touched.
    directory.sync()?;
    overwrite(lock.file(), bytes)?;
    if fs::remove_file(new).is_err() {
        // Another user made it, and was killed. Empty, it is ignored.
        lock_file::open(new, directory.mode_of_files())?.set_len(0)?;
    }
    Ok(())
}

fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

/// Writes the new file. It is on the disk and locked.
fn write_new(new: &Path, bytes: &[u8], mode: u32) -> io::Result<File> {
    match fs::remove_file(new) {
        // A killed writer left it. In a sticky directory, that may be another user's.
        Err(error)
            if ![io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied]
                .contains(&error.kind()) =>
        {
            return Err(error);
        }
        _ => {}
    }
    let mut file = lock_file::open(new, mode)?;
    // No other process locks it before it has its name.
    if !whole_lock::try_lock(&file, Mode::Exclusive)? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn path_of(directory: &Directory, key: &Key) -> PathBuf {
    with_ending(&directory.lock_file(key), ENDING)
}

/// What the name of a record's file ends with, after the name of the lock file.
pub(crate) const ENDING: &str = ".record";

/// The new file for the record at `path`.
fn new_path(path: &Path) -> PathBuf {
    with_ending(path, ".new")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn damaged(path: &Path, damage: Damage) -> Error {
    let path = path.display();
    let (kind, message) = match damage {
        Damage::Broken => (
            ErrorKind::Corrupt,
            format!("{path} is damaged, or no record: its checksum is wrong. {REMEDY}"),
        ),
        Damage::OtherKey => (
            ErrorKind::Corrupt,
            format!("{path} is the record of another lock: it was renamed or copied. {REMEDY}"),
        ),
        Damage::Version(version) => (
            ErrorKind::Unsupported,
            format!("{path} has format {version}, of a later version of this program"),
        ),
    };
    Error::new(kind, message)
}

const SWEPT_AT_ONCE: usize = 64;

const REMEDY: &str = "Restore it, or remove it if what it said may be forgotten";
