//! The only `unsafe` code of the project: two steps that the standard library cannot check.
//!
//! Reviewed for: what runs between fork and exec makes async-signal-safe system calls only,
//! allocates nothing and takes no lock; a descriptor is adopted once, by its only owner.
#![expect(
    unsafe_code,
    reason = "code between fork and exec, and descriptors passed by number, have no safe form"
)]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpid, getppid, tcsetpgrp};

/// Prepares `command`: the kernel kills it when this thread dies, however it dies; it takes the
/// terminal `tty`, if given, before its first instruction; and none of the signals that this
/// process keeps blocked are blocked in it.
pub(crate) fn bind_to_this_process(command: &mut Command, tty: Option<OwnedFd>) {
    let guardian: Pid = getpid();
    let in_child = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
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
    // SAFETY: the closure runs in the child between fork and exec. prctl, getppid, getpid,
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
