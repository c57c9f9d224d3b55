//! Lists holders and held locks for people. It only looks, and never takes a lock.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use leasehold::{Error, Holder, Key, Mode, Owner};

use crate::attempt::read_header;
use crate::directory::Directory;
use crate::failure::failed;
use crate::file_name::{self, Named};
use crate::header;
use crate::holder_record;
use crate::kernel_locks::{Holding, KernelLocks};
use crate::lock_file;
use crate::range_lock;
use crate::room::{self, Present};

/// Returns the holders of `key`.
pub(crate) fn holders(directory: &Directory, key: &Key) -> Result<Vec<Holder>, Error> {
    let path = directory.lock_file(key);
    let opened = lock_file::open_to_read(&path);
    let found = opened.and_then(|file| file.map_or_else(|| Ok(Vec::new()), |file| of_file(&file)));
    found.map_err(|error| failed("look into the lock file", &path, error))
}

/// Returns the held keys that begin with `prefix`, at most `limit`.
pub(crate) fn list(directory: &Directory, prefix: &str, limit: usize) -> Result<Vec<Key>, Error> {
    let failed = |error| failed("read the lock directory", directory.path(), error);
    let kernel = KernelLocks::read();
    let mut keys = Vec::new();
    for entry in fs::read_dir(directory.path()).map_err(failed)? {
        if keys.len() >= limit {
            break;
        }
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = directory.path().join(name);
        let held = held_key(&path, name, prefix, &kernel)
            .map_err(|error| crate::failure::failed("look into the lock file", &path, error))?;
        keys.extend(held);
    }
    Ok(keys)
}

/// Returns the owner in one of the valid records, if there is any.
pub(crate) fn first_owner(file: &File) -> Option<Owner> {
    // An attempt names the owner only in passing, and does not fail without it.
    let length = file.metadata().ok()?.len();
    (0..holder_record::seats_in(length))
        .find_map(|seat| record(file, seat).ok().flatten())?
        .owner
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

/// Reads the record of `seat`, if it is valid.
fn record(file: &File, seat: u64) -> io::Result<Option<Holder>> {
    let offset = holder_record::offset(seat);
    if !range_lock::is_locked(file, offset)? {
        return Ok(None);
    }
    let mut bytes = [0; holder_record::LENGTH];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(holder_record::decode(&bytes)),
        // The file was truncated under its holder.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn held_key(
    path: &std::path::Path,
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
    let held = room::present(&file)? != Present::Nobody || kernel.on(&file)? != Holding::default();
    if !held {
        return Ok(None);
    }
    if named.is_some() {
        return Ok(named);
    }
    let key = header::named_key(&read_header(&file)?);
    Ok(key.filter(|key| file_name::of_key(key) == name && begins(key)))
}
