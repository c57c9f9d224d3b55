//! The system calls for locks on bytes that an open file description owns.

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;

    use nix::Result;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc::flock;

    pub(crate) fn set(file: &File, range: &flock) -> Result<()> {
        fcntl(file, FcntlArg::F_OFD_SETLK(range)).map(drop)
    }

    pub(crate) fn get(file: &File, range: &mut flock) -> Result<()> {
        fcntl(file, FcntlArg::F_OFD_GETLK(range)).map(drop)
    }
}

#[cfg(target_vendor = "apple")]
#[expect(unsafe_code, reason = "no safe wrapper has these commands of macOS")]
mod system {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    use nix::Result;
    use nix::errno::Errno;
    use nix::libc::{self, flock};

    /// `F_OFD_SETLK` and `F_OFD_GETLK` in `sys/fcntl.h`.
    const SET: libc::c_int = 90;
    const GET: libc::c_int = 92;

    pub(crate) fn set(file: &File, range: &flock) -> Result<()> {
        // SAFETY: the descriptor is open, and the kernel reads one `flock`.
        let outcome = unsafe { libc::fcntl(file.as_raw_fd(), SET, std::ptr::from_ref(range)) };
        Errno::result(outcome).map(drop)
    }

    pub(crate) fn get(file: &File, range: &mut flock) -> Result<()> {
        // SAFETY: the descriptor is open, and the kernel reads and writes one `flock`.
        let outcome = unsafe { libc::fcntl(file.as_raw_fd(), GET, std::ptr::from_mut(range)) };
        Errno::result(outcome).map(drop)
    }
}

/// Takes or gives back the bytes of `range`; `EAGAIN` if another description has any of them.
pub(crate) use system::set;

/// Replaces `range` with a lock of another description that conflicts with it, or with a free one.
pub(crate) use system::get;
