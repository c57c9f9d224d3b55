//! Locks on single bytes of a lock file, owned by the open file description (`F_OFD_SETLK`).
//!
//! They are independent of the `flock` of the whole file, which they neither see nor disturb. They
//! end with the same description, and, unlike the `flock`, can be tested without being taken.

use std::fs::File;
use std::io;
use std::ops::Range;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Takes the byte at `offset`; `false` if another description has it.
pub(crate) fn try_lock(file: &File, offset: u64) -> io::Result<bool> {
    take(file, libc::F_WRLCK, offset)
}

/// Takes the byte at `offset` in shared mode; `false` if it is locked exclusively elsewhere.
pub(crate) fn share(file: &File, offset: u64) -> io::Result<bool> {
    take(file, libc::F_RDLCK, offset)
}

fn take(file: &File, kind: i32, offset: u64) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&range(kind, offset, 1))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives back the byte at `offset`.
pub(crate) fn unlock(file: &File, offset: u64) -> io::Result<()> {
    fcntl(
        file,
        FcntlArg::F_OFD_SETLK(&range(libc::F_UNLCK, offset, 1)),
    )?;
    Ok(())
}

/// Gives back every byte that this description has.
pub(crate) fn unlock_all(file: &File) -> io::Result<()> {
    fcntl(
        file,
        FcntlArg::F_OFD_SETLK(&range(libc::F_UNLCK, 0, TO_THE_END)),
    )?;
    Ok(())
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
    let mut asked = range(libc::F_WRLCK, offset, length);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
    let is_locked = i32::from(asked.l_type) != libc::F_UNLCK;
    Ok(is_locked.then_some(asked.l_start as u64))
}

/// A length of zero means all bytes up to the end, however far the file grows.
const TO_THE_END: u64 = 0;

fn range(kind: i32, offset: u64, length: u64) -> libc::flock {
    // Kinds are 0 to 2, and offsets stay below the few megabytes of a full lock file.
    libc::flock {
        l_type: kind as libc::c_short,
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
        assert_eq!(first_locked(&three, 71..80).unwrap(), None);
        assert_eq!(first_locked(&three, 70..70).unwrap(), None);
        unlock_all(&one).unwrap();
        assert!(is_locked(&one, 70).unwrap() && !is_locked(&two, 70).unwrap());
        drop(two);
        assert!(try_lock(&three, 70).unwrap() && !share(&one, 70).unwrap());
    }

    /// The design depends on this: the two kinds of lock do not see each other.
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
