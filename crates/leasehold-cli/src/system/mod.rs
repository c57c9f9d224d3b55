//! What differs between the systems that the command runs on. On macOS less holds; docs/install.md says what.

use nix::unistd::Pid;

pub(crate) mod children;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod kernel;
#[cfg(target_vendor = "apple")]
#[path = "macos/mod.rs"]
mod kernel;
pub(crate) mod raw;

/// Makes this process the parent of descendants whose parents end, where the kernel offers that.
pub(crate) use kernel::adopt_orphans;
/// Makes the kernel kill this process when the thread that forked it ends, where the kernel offers that. It is
/// async-signal-safe.
use kernel::die_with_parent;
/// Whether this process has children of any kind, also those that have ended.
pub(crate) use kernel::has_children;
/// The program that this process runs.
pub(crate) use kernel::own_program;
/// The process with an id; `None` if there is none.
pub(crate) use kernel::process;
/// All processes that this one can see.
pub(crate) use kernel::processes;
/// Reaps adopted children that have ended, except one.
pub(crate) use kernel::reap_orphans;
/// Refuses a view of the processes in which this one would not find its descendants.
pub(crate) use kernel::require_own_processes;

pub(crate) use kernel::SignalQueue;

/// One line of the system's table of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    pub(crate) group: Pid,
    /// Whether it has not ended. One that has ended stays in the table until its parent reaps it.
    pub(crate) is_alive: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_finds_itself() {
        let own = process(Pid::this()).unwrap();
        assert_eq!(own.parent, Pid::parent());
        assert!(own.is_alive);
        assert!(processes().unwrap().contains(&own));
    }
}
