//! The lock on a whole lock file.
//!
//! On Linux it is `flock(2)`, which does not see the locks on bytes. On macOS, an exclusive `flock` would conflict with
//! the lock of any other process on a byte, such as that of a waiting writer. So there it is the lock on one more byte.
//! A `flock` by another program conflicts with that byte too.

use std::fs::{File, TryLockError};
use std::io;

use leasehold::Mode;

use crate::kernel::range_lock;

/// Whether the lock is the `flock`. The variable is for tests of the other form on Linux.
pub(crate) const IS_FLOCK: bool =
    cfg!(target_os = "linux") && option_env!("LEASEHOLD_TEST_BYTE_LOCK").is_none();

/// A byte of the name in the header, where no record begins.
const BYTE: u64 = 1024;

/// Tries to take the lock, or to convert it. Never waits; `false` if others hold it.
pub(crate) fn try_lock(file: &File, mode: Mode) -> io::Result<bool> {
    let is_exclusive = mode == Mode::Exclusive;
    if !IS_FLOCK {
        return match is_exclusive {
            true => range_lock::try_lock(file, BYTE),
            false => range_lock::share(file, BYTE),
        };
    }
    let tried = match is_exclusive {
        true => file.try_lock(),
        false => file.try_lock_shared(),
    };
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Gives back the lock, and every byte that this description has.
pub(crate) fn unlock(file: &File) -> io::Result<()> {
    range_lock::unlock_all(file)?;
    match IS_FLOCK {
        true => file.unlock(),
        false => Ok(()),
    }
}

/// Returns how another description holds the lock. Says nothing about a `flock` on Linux.
pub(crate) fn mode_of_byte(file: &File) -> io::Result<Option<Mode>> {
    range_lock::mode_of(file, BYTE)
}
