use std::collections::HashSet;
use std::io;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::system::{Process, has_children, processes};

/// The processes that a guardian has to end: the process group of CMD, and all descendants of the
/// guardian.
///
/// A process that leaves the group is still a descendant. On Linux it stays one when its parent ends: the guardian is a
/// subreaper, so it adopts orphans below it.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    root: Pid,
    /// CMD's own group; `None` in a nested run, where the group belongs to the outer one.
    group: Option<Pid>,
    /// Children that the root had before it guarded anything: those of a shell that became this program
    /// by exec.
    preexisting: Vec<Pid>,
}

impl ProcessTree {
    /// A tree that has no member yet.
    pub(crate) fn below_this_process() -> io::Result<Self> {
        let root = Pid::this();
        // The kernel knows at once that there is none, whereas reading the table takes time for each
        // process.
        let table = if has_children()? {
            processes()?
        } else {
            Vec::new()
        };
        let children = table.iter().filter(|process| process.parent == root);
        Ok(Self {
            root,
            group: None,
            preexisting: children.map(|process| process.pid).collect(),
        })
    }

    /// CMD leads `group`.
    pub(crate) fn set_group(&mut self, group: Pid) {
        self.group = Some(group);
    }

    /// Sends `signal` to all members that are alive.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        // Read first: on macOS, the death of a parent hides its children.
        let survivors = self.survivors();
        if let Some(group) = self.group {
            // ESRCH: the group is empty. EPERM: no process is left in it that we may signal.
            let _ = killpg(group, signal);
        }
        for process in survivors? {
            if Some(process.group) != self.group {
                let _ = kill(process.pid, signal);
            }
        }
        Ok(())
    }

    /// The members that have not ended.
    pub(crate) fn survivors(&self) -> io::Result<Vec<Process>> {
        let table = processes()?;
        // If the guardian was killed, CMD is no descendant on macOS.
        let roots = [Some(self.root), self.group].into_iter().flatten();
        let below = descendants(&table, roots.collect(), &self.preexisting);
        Ok(table
            .into_iter()
            .filter(|process| process.is_alive && process.pid != self.root)
            .filter(|process| below.contains(&process.pid) || Some(process.group) == self.group)
            .collect())
    }
}

/// The ids of all processes in `table` that descend from `parents`, but not by way of `preexisting`.
fn descendants(table: &[Process], mut parents: Vec<Pid>, preexisting: &[Pid]) -> HashSet<Pid> {
    let mut found = HashSet::new();
    while let Some(parent) = parents.pop() {
        for child in table.iter().filter(|process| process.parent == parent) {
            if !preexisting.contains(&child.pid) && found.insert(child.pid) {
                parents.push(child.pid);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::children::has_ended;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent),
            group: Pid::from_raw(1),
            is_alive: true,
        }
    }

    #[test]
    fn children_are_found_until_they_are_reaped() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(has_children().unwrap(), "it runs");
        let preexisting = ProcessTree::below_this_process().unwrap().preexisting;
        assert!(preexisting.contains(&pid));
        drop(child.stdin.take());
        while !has_ended(pid).unwrap() {
            std::thread::yield_now();
        }
        assert!(has_children().unwrap(), "it is not reaped yet");
        child.wait().unwrap();
        let preexisting = ProcessTree::below_this_process().unwrap().preexisting;
        assert!(!preexisting.contains(&pid));
    }

    #[test]
    fn descendants_are_found_at_any_depth_without_strangers() {
        let table = [
            process(5, 4),
            process(4, 2),
            process(3, 1),
            process(2, 1),
            process(9, 8),
            process(7, 6),
            process(6, 2),
        ];
        let found = descendants(&table, vec![Pid::from_raw(2)], &[Pid::from_raw(6)]);
        assert_eq!(found, HashSet::from([Pid::from_raw(4), Pid::from_raw(5)]));
    }
}
