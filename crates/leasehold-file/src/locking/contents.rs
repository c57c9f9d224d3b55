//! Reads what a lock file contains: its header, and the records of its holders.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use leasehold::look::{Holder, Owner};

use crate::format::{header, holder_record};
use crate::kernel::range_lock;

/// Reads the part of the header that the file has.
pub(crate) fn read_header(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; header::LENGTH];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Returns the owner in one of the valid records, if there is any.
pub(crate) fn first_owner(file: &File) -> Option<Owner> {
    // An attempt names the owner only in passing, and does not fail without it.
    let length = file.metadata().ok()?.len();
    (0..holder_record::seats_in(length))
        .find_map(|seat| record(file, seat).ok().flatten())?
        .owner
}

/// Reads the record of `seat`, if it is valid.
pub(crate) fn record(file: &File, seat: u64) -> io::Result<Option<Holder>> {
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
