//! Who may hold a lock beside whom: readers together, or so many permits, each its own.
//!
//! All of them hold the `flock` shared, which keeps exclusive holders out. From each other they are
//! kept by the byte of their *kind*, behind the records, that all of one kind share: the first byte
//! is the readers', the *n*th after it that of *n* permits. A permit is a seat: the lock on its
//! record is the lock on the permit. So the kernel says who is there, and not what the file says;
//! and all of it ends with the holder, however that ends.
//!
//! A writer that waits shares one more byte with the others that do, and keeps it until it is done, or
//! shares the lock itself. Who comes meanwhile to share it stands back; without it, readers that come
//! one after the other would keep a writer waiting for ever.
//!
//! Nobody takes a kind or a seat but under the lock on the counter. What is seen under it can only
//! become freer; what is seen without it is a hint.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use leasehold::{Claim, Error, ErrorKind, Mode, Permits, Slot, Slots};

use crate::failure::failed;
use crate::holder_record::{self, SEATS};
use crate::range_lock;

/// Whether there is room for a claim beside those who hold the lock in a shared way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is, in one of these seats.
    In(Range<u64>),
    /// There is none.
    Taken,
}

/// How the lock is held by others, as far as their locks on bytes say; of `flock(1)` they say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    Nobody,
    /// One that holds it alone.
    Writer,
    Sharers,
}

/// Looks who holds the lock, without touching one.
pub(crate) fn present(file: &File) -> io::Result<Present> {
    // Who shares the lock has its kind before its seat.
    let sharers = range_lock::first_locked(file, READERS..WAITING_WRITERS)?;
    if sharers.is_some() {
        return Ok(Present::Sharers);
    }
    let seats = range_lock::first_locked(file, holder_record::offset(0)..READERS)?;
    Ok(seats.map_or(Present::Nobody, |_| Present::Writer))
}

/// Says that a writer waits, to all who will come to share the lock.
pub(crate) fn announce_writer(file: &File) -> io::Result<()> {
    if range_lock::share(file, WAITING_WRITERS)? {
        return Ok(());
    }
    Err(locked_by_a_stranger())
}

/// Takes back what [`announce_writer`] said.
pub(crate) fn withdraw_writer(file: &File) -> io::Result<()> {
    range_lock::unlock(file, WAITING_WRITERS)
}

/// Whether another writer waits.
pub(crate) fn is_writer_waiting(file: &File) -> io::Result<bool> {
    range_lock::is_locked(file, WAITING_WRITERS)
}

/// Looks whether there is room for `claim`, without touching a lock.
pub(crate) fn look(file: &File, path: &Path, claim: &Claim) -> Result<Room, Error> {
    let failed = |error| failed("look at the locks on", path, error);
    match claim.mode {
        // What it excludes, the `flock` does.
        Mode::Exclusive => Ok(Room::In(0..SEATS)),
        Mode::Shared => {
            let permits = range_lock::first_locked(file, KINDS_OF_PERMITS).map_err(failed)?;
            Ok(permits.map_or(Room::In(0..SEATS), |_| Room::Taken))
        }
        Mode::Permit(permits) => {
            if range_lock::is_locked(file, READERS).map_err(failed)? {
                return Ok(Room::Taken);
            }
            if let Some(other) = another_number(file, permits).map_err(failed)? {
                return Err(Error::new(
                    ErrorKind::PermitsDiffer,
                    format!("the lock is in use with {other} permits, not {permits}"),
                ));
            }
            let free = free(file, permits).map_err(failed)?;
            Ok(free
                .iter()
                .next()
                .map_or(Room::Taken, |slot| Room::In(seat(slot))))
        }
    }
}

/// Takes the byte of the kind that a holder in `mode` is of.
pub(crate) fn enter(file: &File, mode: Mode) -> io::Result<()> {
    let kind = match mode {
        Mode::Exclusive => return Ok(()),
        Mode::Shared => READERS,
        Mode::Permit(permits) => kind(permits),
    };
    if range_lock::share(file, kind)? {
        return Ok(());
    }
    Err(locked_by_a_stranger())
}

/// The answer to a lock on a byte of ours that nobody who knows its meaning would take.
pub(crate) fn locked_by_a_stranger() -> io::Error {
    io::Error::other("another program has locked bytes of it (fcntl)")
}

/// The permits that nobody holds, where no other number of them is in use.
fn free(file: &File, permits: Permits) -> io::Result<Slots> {
    if !range_lock::is_locked(file, kind(permits))? {
        // Nobody holds any. Who is in a seat holds the lock alone, and has the `flock` say so.
        return Ok(permits.slots().collect());
    }
    let mut free = Slots::default();
    for slot in permits.slots() {
        if !range_lock::is_locked(file, holder_record::offset(seat(slot).start))? {
            free.insert(slot);
        }
    }
    Ok(free)
}

fn another_number(file: &File, permits: Permits) -> io::Result<Option<u64>> {
    let Range { start, end } = KINDS_OF_PERMITS;
    let own = kind(permits);
    let below = range_lock::first_locked(file, start..own)?;
    let other = match below {
        Some(other) => Some(other),
        None => range_lock::first_locked(file, own + 1..end)?,
    };
    Ok(other.map(|byte| byte - READERS))
}

fn seat(slot: Slot) -> Range<u64> {
    let seat = slot.get().into();
    seat..seat + 1
}

fn kind(permits: Permits) -> u64 {
    READERS + u64::from(permits.get())
}

/// Behind the last record.
const READERS: u64 = holder_record::offset(SEATS);
const KINDS_OF_PERMITS: Range<u64> = READERS + 1..WAITING_WRITERS;
const WAITING_WRITERS: u64 = READERS + 1 + Permits::MAX as u64;
