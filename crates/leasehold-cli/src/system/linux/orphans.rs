use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use rustix::process::WaitIdOptions;

use super::processes::processes;
use crate::system::children;

/// Whether there are children, also those whose end sends no SIGCHLD.
pub(crate) fn has_children() -> io::Result<bool> {
    children::any(WaitIdOptions::from_bits_retain(
        libc::__WALL.cast_unsigned(),
    ))
}

/// Reaps adopted children that have ended, except `kept`.
pub(crate) fn reap_orphans(kept: Option<Pid>) -> io::Result<()> {
    loop {
        match waitid(
            Id::All,
            WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT,
        ) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
            Ok(status) => match status.pid().filter(|pid| Some(*pid) != kept) {
                Some(orphan) => reap(orphan)?,
                None => break,
            },
            // Killed by a real-time signal, which has no name.
            Err(Errno::EINVAL) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    // The kernel keeps reporting this one; the table shows the others.
    let own = Pid::this();
    for process in processes()? {
        if process.parent == own && Some(process.pid) != kept && !process.is_alive {
            reap(process.pid)?;
        }
    }
    Ok(())
}

/// Reaps a child that has ended.
fn reap(child: Pid) -> io::Result<()> {
    match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
        Ok(_) | Err(Errno::ECHILD) => Ok(()),
        // Killed by a real-time signal, which has no name. It is reaped all the same.
        Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
