//! Linux.

mod orphans;
mod processes;
mod signal_queue;

use std::io;
use std::path::PathBuf;

use nix::sys::prctl;
use nix::sys::signal::Signal;

pub(crate) use orphans::{has_children, reap_orphans};
pub(crate) use processes::{process, processes, require_own_processes};
pub(crate) use signal_queue::SignalQueue;

pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)
}

/// It is the right program even if its file has been replaced.
#[expect(clippy::unnecessary_wraps, reason = "other systems may not know")]
pub(crate) fn own_program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}
