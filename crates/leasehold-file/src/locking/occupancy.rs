//! Which holders may share a lock: readers together, or the holders of *n* permits, each with its own.
//!
//! All of them hold the `flock` shared, which keeps exclusive holders out. Bytes behind the records keep
//! them apart from each other: all holders of one *kind* share the lock on one byte. The first byte is
//! for readers, and the *n*th after it for holders of one of *n* permits. A permit is a seat: the lock
//! on its record is the lock on the permit. So the kernel decides who holds the lock, and not the
//! content of the file. All these locks end with the holder, however it ends.
//!
//! Waiting writers share one more byte. A writer keeps it until it is done, or until it shares the lock
//! itself. A request that comes meanwhile to share the lock yields to the writer. Without that byte, a
//! stream of readers would keep a writer waiting indefinitely.
//!
//! A request takes a kind or a seat only under the lock on the counter. What it sees under that lock can
//! only become freer; what it sees without that lock is a hint.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use leasehold::member::{PermitSlot, PermitSlots};
use leasehold::store::{LockRequest, Permits};
use leasehold::{Error, Mode};

use crate::failure::failed;
use crate::format::holder_record::{self, SEATS};
use crate::kernel::range_lock;

/// Whether a request has room next to the holders that share the lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Occupancy {
    /// There is, in one of these seats.
    Room(Range<u64>),
    /// There is none.
    Taken,
}

/// How others hold the lock, according to their byte locks. Those say nothing about `flock(1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    NoHolder,
    /// An exclusive holder.
    Writer,
    Sharers,
}

/// Finds out how the lock is held, without taking any lock.
pub(crate) fn present(file: &File) -> io::Result<Present> {
    // A holder that shares the lock takes its kind before its seat.
    let sharers = range_lock::first_locked(file, READERS..WAITING_WRITERS)?;
    if sharers.is_some() {
        return Ok(Present::Sharers);
    }
    let seats = range_lock::first_locked(file, holder_record::offset(0)..READERS)?;
    Ok(seats.map_or(Present::NoHolder, |_| Present::Writer))
}

/// Announces a waiting writer to all requests that will come to share the lock.
pub(crate) fn announce_writer(file: &File) -> io::Result<()> {
    if range_lock::share(file, WAITING_WRITERS)? {
        return Ok(());
    }
    Err(foreign_lock())
}

/// Withdraws the announcement of [`announce_writer`].
pub(crate) fn withdraw_writer(file: &File) -> io::Result<()> {
    range_lock::unlock(file, WAITING_WRITERS)
}

/// Returns whether another writer waits.
pub(crate) fn is_writer_waiting(file: &File) -> io::Result<bool> {
    range_lock::is_locked(file, WAITING_WRITERS)
}

/// Checks whether there is room for `request`, without taking any lock.
pub(crate) fn look(file: &File, path: &Path, request: &LockRequest) -> Result<Occupancy, Error> {
    let failed = |error| failed("look at the locks on", path, error);
    match request.mode {
        // The `flock` excludes all that this request excludes.
        Mode::Exclusive => Ok(Occupancy::Room(0..SEATS)),
        Mode::Shared => {
            let permits = range_lock::first_locked(file, KINDS_OF_PERMITS).map_err(failed)?;
            Ok(permits.map_or(Occupancy::Room(0..SEATS), |_| Occupancy::Taken))
        }
        Mode::Permit(permits) => {
            if range_lock::is_locked(file, READERS).map_err(failed)? {
                return Ok(Occupancy::Taken);
            }
            if let Some(other) = another_number(file, permits).map_err(failed)? {
                return Err(Error::permits_differ(other, permits));
            }
            let free = free(file, permits).map_err(failed)?;
            Ok(free
                .iter()
                .next()
                .map_or(Occupancy::Taken, |slot| Occupancy::Room(seat(slot))))
        }
    }
}

/// Takes the byte of the kind that a holder in `mode` belongs to.
pub(crate) fn enter(file: &File, mode: Mode) -> io::Result<()> {
    let kind = match mode {
        Mode::Exclusive => return Ok(()),
        Mode::Shared => READERS,
        Mode::Permit(permits) => kind(permits),
    };
    if range_lock::share(file, kind)? {
        return Ok(());
    }
    Err(foreign_lock())
}

/// The error for a lock on one of our bytes that no program takes if it knows their meaning.
pub(crate) fn foreign_lock() -> io::Error {
    io::Error::other("another program has locked bytes of it (fcntl)")
}

/// Returns the free permits, given that no other number of permits is in use.
fn free(file: &File, permits: Permits) -> io::Result<PermitSlots> {
    if !range_lock::is_locked(file, kind(permits))? {
        // No permit is held. A holder in a seat is then an exclusive one, and the `flock` says so.
        return Ok(permits.slots().collect());
    }
    let mut free = PermitSlots::default();
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

fn seat(slot: PermitSlot) -> Range<u64> {
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
