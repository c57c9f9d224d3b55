//! The `unsafe` code that all systems share: three steps that the standard library cannot check.
//!
//! Reviewed for: what runs between fork and exec makes async-signal-safe system calls only,
//! allocates nothing and takes no lock; a descriptor is adopted once, by its only owner.
#![expect(
    unsafe_code,
    reason = "code between fork and exec, descriptors passed by number, and the action of a signal have no safe form"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpid, getppid, tcsetpgrp};

use crate::system::die_with_parent;

/// Prepares `command`: the kernel kills it when this thread dies, however it dies, where it offers that; it takes the
/// terminal `tty`, if given, before its first instruction; and none of the signals that this
/// process keeps blocked are blocked in it.
pub(crate) fn bind_to_this_process(command: &mut Command, tty: Option<OwnedFd>) {
    let guardian: Pid = getpid();
    let in_child = move || {
        die_with_parent()?;
        if getppid() != guardian {
            // The guardian died before the line above, so no process would end the command.
            return Err(io::Error::from(nix::Error::ESRCH));
        }
        if let Some(tty) = &tty {
            // While SIGTTOU is blocked, a process may take the terminal from the background. One
            // that was hung up meanwhile is no reason not to run.
            let _ = tcsetpgrp(tty, getpid());
        }
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: the closure runs in the child between fork and exec. die_with_parent, getppid, getpid,
    // tcsetpgrp (an ioctl) and sigprocmask are async-signal-safe; errors carry a number and
    // allocate nothing; nothing else is called.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Takes over a descriptor that the parent left open for this process, and keeps it from being
/// passed on.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // The first three belong to the standard streams.
    if number < 3 {
        return Err(io::Error::from(nix::Error::EBADF));
    }
    // SAFETY: the number comes from the parent, which opened it for this purpose alone; nothing in
    // this process knows it but this call, which is made once per number before any descriptor
    // is opened here. If it is not open after all, the next line fails, and closing it is harmless.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(fd)
}

/// Whether this process ignores `signal`.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    let unchanged = std::ptr::null();
    // SAFETY: without a new action, the call changes nothing, and writes the current one to `action`.
    let outcome = unsafe { libc::sigaction(signal as i32, unchanged, action.as_mut_ptr()) };
    // SAFETY: the call has written it.
    outcome == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_known() {
        // The standard library ignores it.
        assert!(is_ignored(Signal::SIGPIPE));
        assert!(!is_ignored(Signal::SIGWINCH));
    }
}
