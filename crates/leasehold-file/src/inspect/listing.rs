//! Lists holders and held locks for people. It only looks, and never takes a lock.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use leasehold::look::{Holder, Pattern};
use leasehold::{Error, Key, Mode};

use crate::directory::{Directory, record_file};
use crate::failure::failed;
use crate::format::file_name::{self, Named};
use crate::format::header;
use crate::format::holder_record;
use crate::kernel::kernel_locks::{Holding, KernelLocks};
use crate::kernel::lock_file;
use crate::locking::contents::{read_header, record};
use crate::locking::occupancy::{self, Present};

/// Returns the holders of `key`.
pub(crate) fn holders(directory: &Directory, key: &Key) -> Result<Vec<Holder>, Error> {
    let path = directory.lock_file(key);
    let opened = lock_file::open_to_read(&path);
    let found = opened.and_then(|file| file.map_or_else(|| Ok(Vec::new()), |file| of_file(&file)));
    found.map_err(|error| look_failed(&path, error))
}

fn look_failed(path: &Path, error: io::Error) -> Error {
    failed("look into the lock file", path, error)
}

/// Returns the held keys that begin with `prefix`, and why lock files could not be read.
///
/// One such file, perhaps of another user, does not hide the others.
pub(crate) fn held_keys(
    directory: &Directory,
    prefix: &str,
) -> Result<(Vec<Key>, Vec<Error>), Error> {
    let failed = |error| failed("read the lock directory", directory.path(), error);
    let kernel = KernelLocks::read();
    let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory.path()).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = directory.path().join(name);
        match held_key(&path, name, prefix, &kernel) {
            Ok(held) => keys.extend(held),
            Err(error) => unreadable.push(look_failed(&path, error)),
        }
    }
    Ok((keys, unreadable))
}

/// Returns the keys of the records that match, in order. A hashed name leads to its key by way of the
/// lock file, and is left out if that is gone.
pub(crate) fn keys_of_records(directory: &Directory, pattern: &Pattern) -> Result<Vec<Key>, Error> {
    let failed = |error| failed("read the lock directory", directory.path(), error);
    let mut keys = Vec::new();
    for entry in fs::read_dir(directory.path()).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name
            .to_str()
            .and_then(|name| name.strip_suffix(record_file::ENDING));
        let key = match name.map(|name| (name, file_name::parse(name))) {
            Some((_, Named::Key(key))) => Some(key),
            Some((name, Named::Hash)) => {
                let path = directory.path().join(name);
                let file = lock_file::open_to_read(&path).ok().flatten();
                file.and_then(|file| named_in(&file, name).ok().flatten())
            }
            _ => None,
        };
        keys.extend(key.filter(|key| pattern.matches(key.as_str())));
    }
    keys.sort_unstable();
    Ok(keys)
}

/// Returns the key that the lock file `name` contains.
fn named_in(file: &File, name: &str) -> io::Result<Option<Key>> {
    let key = header::named_key(&read_header(file)?);
    Ok(key.filter(|key| file_name::of_key(key) == name))
}

fn of_file(file: &File) -> io::Result<Vec<Holder>> {
    let mut holders = Vec::new();
    for seat in 0..holder_record::seats_in(file.metadata()?.len()) {
        holders.extend(record(file, seat)?);
    }
    let Holding { exclusive, shared } = KernelLocks::read().on(file)?;
    for (mode, held) in [(Mode::Exclusive, exclusive), (Mode::Shared, shared)] {
        let known = processes(&holders, mode == Mode::Exclusive);
        let others = held.saturating_sub(known);
        holders.extend(std::iter::repeat_n(Holder::unknown(mode), others));
    }
    Ok(holders)
}

/// Counts the processes among `holders` that hold the file exclusively (`alone`) or shared. To the
/// kernel, a permit is a shared lock.
fn processes(holders: &[Holder], alone: bool) -> usize {
    let in_mode = |holder: &&Holder| (holder.mode == Mode::Exclusive) == alone;
    let clients = holders
        .iter()
        .filter(in_mode)
        .filter_map(|holder| holder.client.as_ref());
    let distinct: HashSet<_> = clients.map(|client| (&client.host, client.pid)).collect();
    distinct.len()
}

fn held_key(
    path: &Path,
    name: &str,
    prefix: &str,
    kernel: &KernelLocks,
) -> io::Result<Option<Key>> {
    let begins = |key: &Key| key.as_str().starts_with(prefix);
    let named = match file_name::parse(name) {
        Named::Foreign => return Ok(None),
        Named::Key(key) if !begins(&key) => return Ok(None),
        Named::Key(key) => Some(key),
        Named::Hash => None,
    };
    let file = match lock_file::open_to_read(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        // A folder, or anything else that is not a regular file, is no lock.
        Err(_) if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let held =
        occupancy::present(&file)? != Present::NoHolder || kernel.on(&file)? != Holding::default();
    if !held {
        return Ok(None);
    }
    if named.is_some() {
        return Ok(named);
    }
    Ok(named_in(&file, name)?.filter(begins))
}
