//! Removes the files of locks that no process uses.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use leasehold::Mode;
use leasehold::clock::WallTime;

use crate::directory::Directory;
use crate::format::file_name::{self, Named};
use crate::format::header;
use crate::kernel::lock_file::{self, Locking};
use crate::locking::contents::read_header;

/// How many lock files a cleanup removed, and how many it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleanup {
    /// Lock files that were removed, or that would be.
    pub removed: usize,
    /// Lock files that are in use, were used a short time ago, or cannot be read.
    pub kept: usize,
}

/// Removes the lock files that were not used since `unused_since`. With `dry`, it only counts them.
pub(crate) fn remove_unused(
    directory: &Directory,
    unused_since: WallTime,
    dry: bool,
) -> io::Result<Cleanup> {
    let mut cleanup = Cleanup::default();
    for entry in fs::read_dir(directory.path())? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        if file_name::parse(name) == Named::Foreign {
            continue;
        }
        // What cannot be read stays.
        match remove(&directory.path().join(name), name, unused_since, dry) {
            Ok(true) => cleanup.removed += 1,
            Ok(false) | Err(_) => cleanup.kept += 1,
        }
    }
    Ok(cleanup)
}

/// Removes the file, unless it is in use, or its counter could be needed.
fn remove(path: &Path, name: &str, unused_since: WallTime, dry: bool) -> io::Result<bool> {
    let Some(file) = lock_file::open_to_lock(path)? else {
        return Ok(false);
    };
    let since = std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(unused_since.as_micros());
    let is_old = |file: &File| Ok::<_, io::Error>(file.metadata()?.modified()? < since);
    // A lock in use is left alone: an attempt that does not wait would find it busy.
    if !is_old(&file)? {
        return Ok(false);
    }
    // While this process has the lock, no other process can get it: each one that opened the file before looks up the
    // name again once it has the lock.
    let Locking::Won(lock) = lock_file::lock(file, path, Mode::Exclusive)? else {
        return Ok(false);
    };
    if !is_old(lock.file())? {
        return Ok(false);
    }
    let bytes = read_header(lock.file())?;
    let key = match file_name::parse(name) {
        Named::Key(key) => Some(key),
        Named::Hash => header::named_key(&bytes),
        Named::Foreign => None,
    };
    let counter = key.and_then(|key| header::read(&bytes, &key).ok());
    // A later fence comes from the clock. A counter that is ahead of the clock is still needed.
    if counter.is_none_or(|counter| counter.value() >= unused_since.as_micros()) {
        return Ok(false);
    }
    if !dry {
        fs::remove_file(path)?;
    }
    Ok(true)
}
