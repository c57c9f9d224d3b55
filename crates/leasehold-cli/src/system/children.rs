//! The state of children, without reaping them.

use std::io;

use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus, waitid};

/// Whether `child` has ended. It is not reaped.
pub(crate) fn has_ended(child: Pid) -> io::Result<bool> {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    Ok(now(id(child)?, ended)?.is_some())
}

/// Takes the next stop or continuation of `child`; `None` if there is none now.
pub(crate) fn next_change(child: Pid) -> io::Result<Option<WaitIdStatus>> {
    let changed = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED;
    match now(id(child)?, changed) {
        Err(Errno::CHILD) => Ok(None),
        change => Ok(change?),
    }
}

/// Whether there are children, also those that have ended. `more` names kinds that only some systems have.
pub(crate) fn any(more: WaitIdOptions) -> io::Result<bool> {
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | more;
    match now(WaitId::All, any | WaitIdOptions::NOWAIT) {
        Err(Errno::CHILD) => Ok(false),
        Ok(_) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

fn now(id: WaitId<'_>, changes: WaitIdOptions) -> rustix::io::Result<Option<WaitIdStatus>> {
    waitid(id, changes | WaitIdOptions::NOHANG)
}

fn id(child: Pid) -> io::Result<WaitId<'static>> {
    let pid = rustix::process::Pid::from_raw(child.as_raw());
    Ok(WaitId::Pid(pid.ok_or(Errno::CHILD)?))
}
