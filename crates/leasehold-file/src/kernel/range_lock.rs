//! Locks on single bytes of a lock file, owned by the open file description (`F_OFD_SETLK`).
//!
//! They are independent of the `flock` of the whole file, which they neither see nor disturb. They
//! end with the same description, and, unlike the `flock`, can be tested without being taken.

use std::fs::File;
use std::io;
use std::ops::Range;

use leasehold::Mode;
use nix::errno::Errno;
use nix::libc;

use crate::kernel::ofd;

/// Takes the byte at `offset`; `false` if another description has it.
pub(crate) fn try_lock(file: &File, offset: u64) -> io::Result<bool> {
    take(file, EXCLUSIVE, offset)
}

/// Takes the byte at `offset` in shared mode; `false` if it is locked exclusively elsewhere.
pub(crate) fn share(file: &File, offset: u64) -> io::Result<bool> {
    take(file, SHARED, offset)
}

fn take(file: &File, kind: libc::c_short, offset: u64) -> io::Result<bool> {
    match ofd::set(file, &range(kind, offset, 1)) {
        Ok(()) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives back the byte at `offset`.
pub(crate) fn unlock(file: &File, offset: u64) -> io::Result<()> {
    Ok(ofd::set(file, &range(FREE, offset, 1))?)
}

/// Gives back every byte that this description has.
pub(crate) fn unlock_all(file: &File) -> io::Result<()> {
    Ok(ofd::set(file, &range(FREE, 0, TO_THE_END))?)
}

/// Returns how another description has the byte at `offset`.
pub(crate) fn mode_of(file: &File, offset: u64) -> io::Result<Option<Mode>> {
    let found = conflict(file, offset, 1)?;
    Ok(found.map(|lock| match lock.l_type == EXCLUSIVE {
        true => Mode::Exclusive,
        false => Mode::Shared,
    }))
}

/// Returns whether another description has the byte at `offset`, exclusively or shared.
pub(crate) fn is_locked(file: &File, offset: u64) -> io::Result<bool> {
    Ok(locked(file, offset, 1)?.is_some())
}

/// Returns one of `bytes` that another description has.
pub(crate) fn first_locked(file: &File, bytes: Range<u64>) -> io::Result<Option<u64>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let locked = locked(file, bytes.start, bytes.end - bytes.start)?;
    // A lock may begin before the bytes that were asked about.
    Ok(locked.map(|byte| byte.max(bytes.start)))
}

/// Returns where a lock of another description begins that covers any of `length` bytes.
fn locked(file: &File, offset: u64, length: u64) -> io::Result<Option<u64>> {
    let found = conflict(file, offset, length)?;
    Ok(found.map(|lock| lock.l_start as u64))
}

/// Returns a lock of another description that covers any of `length` bytes.
fn conflict(file: &File, offset: u64, length: u64) -> io::Result<Option<libc::flock>> {
    let mut asked = range(EXCLUSIVE, offset, length);
    ofd::get(file, &mut asked)?;
    Ok((asked.l_type != FREE).then_some(asked))
}

/// A length of zero means all bytes up to the end, however far the file grows.
const TO_THE_END: u64 = 0;

// The types of these constants differ between systems; their values are 0 to 3.
const SHARED: libc::c_short = libc::F_RDLCK as libc::c_short;
const EXCLUSIVE: libc::c_short = libc::F_WRLCK as libc::c_short;
const FREE: libc::c_short = libc::F_UNLCK as libc::c_short;

fn range(kind: libc::c_short, offset: u64, length: u64) -> libc::flock {
    // Offsets stay below the few megabytes of a full lock file.
    libc::flock {
        l_type: kind,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset as libc::off_t,
        l_len: length as libc::off_t,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_locks_belong_to_the_description() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let (one, two) = (place.reopen().unwrap(), place.reopen().unwrap());
        assert!(try_lock(&one, 2048).unwrap());
        assert!(!try_lock(&two, 2048).unwrap());
        assert!(try_lock(&two, 3072).unwrap());
        assert!(is_locked(&two, 2048).unwrap() && !is_locked(&one, 2048).unwrap());
        assert_eq!(first_locked(&one, 0..4096).unwrap(), Some(3072));
        assert_eq!(mode_of(&two, 2048).unwrap(), Some(Mode::Exclusive));
        assert_eq!(mode_of(&one, 2048).unwrap(), None);
        unlock(&two, 3072).unwrap();
        assert_eq!(first_locked(&one, 0..4096).unwrap(), None);
        unlock_all(&one).unwrap();
        assert!(!is_locked(&two, 2048).unwrap());
    }

    #[test]
    fn shared_byte_locks_are_found_by_offset() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let [one, two, three] = [(); 3].map(|()| place.reopen().unwrap());
        assert!(share(&one, 70).unwrap() && share(&two, 70).unwrap());
        assert!(!try_lock(&three, 70).unwrap());
        assert_eq!(first_locked(&three, 60..80).unwrap(), Some(70));
        assert_eq!(mode_of(&three, 70).unwrap(), Some(Mode::Shared));
        assert_eq!(first_locked(&three, 71..80).unwrap(), None);
        assert_eq!(first_locked(&three, 70..70).unwrap(), None);
        unlock_all(&one).unwrap();
        assert!(is_locked(&one, 70).unwrap() && !is_locked(&two, 70).unwrap());
        drop(two);
        assert!(try_lock(&three, 70).unwrap() && !share(&one, 70).unwrap());
    }

    /// The design depends on this on Linux: the two kinds of lock do not see each other.
    #[cfg(target_os = "linux")]
    #[test]
    fn they_are_independent_of_flock() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let (one, two) = (place.reopen().unwrap(), place.reopen().unwrap());
        one.try_lock().unwrap();
        assert!(!is_locked(&two, 0).unwrap());
        assert!(try_lock(&two, 0).unwrap());
        one.unlock().unwrap();
        two.try_lock().unwrap();
    }
}
