use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;

use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use crate::system::{Process, processes};

/// The controlling terminal, and which process group has it.
///
/// CMD runs in its own group, and only the foreground group may read a terminal. So with a terminal on
/// stdin, the group of CMD becomes the foreground group at the start. If the program shares its group
/// with others (`leasehold run x -- make | less`), that happens only when CMD was stopped because it
/// wanted the terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: File,
    own_group: Pid,
}

impl Terminal {
    /// The terminal, if there is one.
    pub(crate) fn open() -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty");
        Some(Self {
            tty: tty.ok()?,
            own_group: getpgrp(),
        })
    }

    /// Whether CMD gets the terminal at the start.
    pub(crate) fn is_for_the_command(&self) -> bool {
        io::stdin().is_terminal() && self.is_ours() && !self.has_siblings()
    }

    /// Makes `group` the foreground group if the group of the program is.
    pub(crate) fn give_to(&self, group: Pid) -> bool {
        self.is_ours() && tcsetpgrp(&self.tty, group).is_ok()
    }

    /// Whether `group` is the foreground group.
    pub(crate) fn is_with(&self, group: Pid) -> bool {
        tcgetpgrp(&self.tty) == Ok(group)
    }

    /// Makes the group of the program the foreground group again if `group` still is, and returns
    /// whether it was.
    pub(crate) fn take_back_from(&self, group: Pid) -> bool {
        let was_with = self.is_with(group);
        if was_with {
            // A terminal that was hung up has no foreground group.
            let _ = tcsetpgrp(&self.tty, self.own_group);
        }
        was_with
    }

    /// The terminal itself, for the process that sets the foreground group.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.tty.into()
    }

    fn is_ours(&self) -> bool {
        self.is_with(self.own_group)
    }

    /// Whether others of the same job, a pipeline, may want the terminal too. A parent in the same
    /// group, a script, only waits for us.
    fn has_siblings(&self) -> bool {
        let Ok(table) = processes() else {
            return false;
        };
        let ancestors = ancestors(&table, Pid::this());
        table
            .iter()
            .any(|process| process.group == self.own_group && !ancestors.contains(&process.pid))
    }
}

/// `pid` and everything above it.
fn ancestors(table: &[Process], pid: Pid) -> Vec<Pid> {
    let mut line = vec![pid];
    let mut next = pid;
    while let Some(process) = table.iter().find(|process| process.pid == next) {
        if line.contains(&process.parent) {
            break;
        }
        next = process.parent;
        line.push(next);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_reach_from_this_process_to_the_root() {
        let table = processes().unwrap();
        let line = ancestors(&table, Pid::this());
        assert_eq!(line[..2], [Pid::this(), Pid::parent()]);
        assert_eq!(line.last(), Some(&Pid::from_raw(0)));
    }
}
