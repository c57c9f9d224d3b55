//! macOS. It has no way to adopt orphans, and none to end a process together with its parent.

mod processes;
mod signal_queue;

use std::io;
use std::path::PathBuf;

use nix::unistd::Pid;
use rustix::process::WaitIdOptions;

use crate::output::failure::Failure;
use crate::system::children;

pub(crate) use processes::{process, processes};
pub(crate) use signal_queue::SignalQueue;

pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

pub(crate) fn has_children() -> io::Result<bool> {
    children::any(WaitIdOptions::empty())
}

pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

pub(crate) fn reap_orphans(_: Option<Pid>) -> io::Result<()> {
    Ok(())
}

pub(crate) fn require_own_processes() -> Result<(), Failure> {
    Ok(())
}
