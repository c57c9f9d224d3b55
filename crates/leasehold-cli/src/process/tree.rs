use std::collections::HashSet;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::output::failure::Failure;

/// The processes that a guardian has to end: the process group of CMD, and all descendants of the
/// guardian.
///
/// A process that leaves the group is still a descendant: the guardian is a subreaper, so it adopts
/// orphans below it.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    root: Pid,
    /// CMD's own group; `None` in a nested run, where the group belongs to the outer one.
    group: Option<Pid>,
    /// Children that the root had before it guarded anything: those of a shell that became this program
    /// by exec.
    strangers: Vec<Pid>,
}

impl ProcessTree {
    /// A tree that has no member yet.
    pub(crate) fn below_this_process() -> io::Result<Self> {
        let root = Pid::this();
        // The kernel knows at once that there is none, whereas reading the table takes time for each
        // process.
        let table = if has_children()? {
            table()?
        } else {
            Vec::new()
        };
        let children = table.iter().filter(|process| process.parent == root);
        Ok(Self {
            root,
            group: None,
            strangers: children.map(|process| process.pid).collect(),
        })
    }

    /// CMD leads `group`.
    pub(crate) fn set_group(&mut self, group: Pid) {
        self.group = Some(group);
    }

    /// Sends `signal` to all members that are alive.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        if let Some(group) = self.group {
            // ESRCH: the group is empty. EPERM: no process is left in it that we may signal.
            let _ = killpg(group, signal);
        }
        for process in self.survivors()? {
            if Some(process.group) != self.group {
                let _ = kill(process.pid, signal);
            }
        }
        Ok(())
    }

    /// The members that have not ended.
    pub(crate) fn survivors(&self) -> io::Result<Vec<Process>> {
        let table = table()?;
        let below = descendants(&table, self.root, &self.strangers);
        Ok(table
            .into_iter()
            .filter(|process| process.is_alive() && process.pid != self.root)
            .filter(|process| below.contains(&process.pid) || Some(process.group) == self.group)
            .collect())
    }

    /// Reaps adopted children that have ended, except `kept`.
    pub(crate) fn reap_orphans(&self, kept: Option<Pid>) -> io::Result<()> {
        loop {
            match waitid(Id::All, ENDED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT) {
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
        for process in table()? {
            let adopted = process.parent == self.root && Some(process.pid) != kept;
            if adopted && process.state == b'Z' {
                reap(process.pid)?;
            }
        }
        Ok(())
    }
}

/// Refuses a `/proc` in which this process would not find its descendants: after the loss of a lock
/// they would run on.
pub(crate) fn require_own_proc() -> Result<(), Failure> {
    let own = Pid::this();
    let text = match fs::read_to_string("/proc/self/status") {
        Ok(status) => match foreign_pid(&status, own) {
            None => return Ok(()),
            Some(shown) => format!(
                "/proc belongs to another PID namespace (its self is {shown}, this process is {own})"
            ),
        },
        Err(error) => format!("/proc does not show this process ({error})"),
    };
    Err(Failure::of_start(&format_args!(
        "{text}, so the descendants of the command could not be found and ended; mount the proc file \
         system of this namespace, for example with unshare --mount-proc"
    )))
}

/// The id that `status`, of `/proc/self`, gives to the process that is `own` to itself; `None` if both
/// mean the same namespace. Then `NSpid` has no further ids, of namespaces below.
fn foreign_pid(status: &str, own: Pid) -> Option<&str> {
    let ids_of = |name| status.lines().find_map(|line| line.strip_prefix(name));
    // A kernel without PID namespaces writes the second line only.
    let mut ids = ids_of("NSpid:").or(ids_of("Pid:"))?.split_whitespace();
    let shown = ids.next()?;
    let is_own = ids.next().is_none() && shown == own.to_string();
    (!is_own).then_some(shown)
}

fn has_children() -> io::Result<bool> {
    let any = ENDED | WaitPidFlag::WSTOPPED | WaitPidFlag::WCONTINUED | WaitPidFlag::__WALL;
    match waitid(Id::All, any | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT) {
        Err(Errno::ECHILD) => Ok(false),
        // EINVAL: one was killed by a real-time signal.
        Ok(_) | Err(Errno::EINVAL) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
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

const ENDED: WaitPidFlag = WaitPidFlag::WEXITED;

/// One line of the system's table of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    pub(crate) group: Pid,
    state: u8,
    threads: u32,
}

impl Process {
    /// Reads the line of `pid`; `None` if there is no such process.
    pub(crate) fn find(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// A process whose first thread ended while others go on shows as a zombie too.
    fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X') || self.threads > 1
    }

    /// Reads a line of `/proc/<pid>/stat`. The name of the program is in parentheses and may contain
    /// anything, including parentheses.
    fn parse(stat: &[u8]) -> Option<Self> {
        let open = stat.iter().position(|b| *b == b'(')?;
        let close = stat.iter().rposition(|b| *b == b')')?;
        let pid = number(stat.get(..open)?)?;
        let mut fields = stat
            .get(close + 1..)?
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let state = *fields.next()?.first()?;
        let parent = number(fields.next()?)?;
        let group = number(fields.next()?)?;
        let threads = number(fields.nth(FIELDS_UP_TO_THREADS)?)?;
        Some(Self {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent),
            group: Pid::from_raw(group),
            state,
            threads: threads.cast_unsigned(),
        })
    }
}

/// session, tty, tpgid, flags, four counters of faults, four of time, priority, nice.
const FIELDS_UP_TO_THREADS: usize = 14;

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// All processes that this one can see.
pub(crate) fn table() -> io::Result<Vec<Process>> {
    let mut table = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        // Ignore processes that have ended since the directory was read.
        table.extend(pid.map(Pid::from_raw).and_then(Process::find));
    }
    Ok(table)
}

/// The ids of all processes in `table` that descend from `root`, but not by way of `strangers`.
fn descendants(table: &[Process], root: Pid, strangers: &[Pid]) -> HashSet<Pid> {
    let mut found = HashSet::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in table.iter().filter(|process| process.parent == parent) {
            if !strangers.contains(&child.pid) && found.insert(child.pid) {
                parents.push(child.pid);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent),
            group: Pid::from_raw(1),
            state: b'S',
            threads: 1,
        }
    }

    #[test]
    fn stat_line_is_parsed_for_any_program_name() {
        let line = b"71 (a) b (c) Z 70 69 5 34816 71 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99 1 1\n";
        let parsed = Process::parse(line).unwrap();
        assert_eq!(parsed.pid, Pid::from_raw(71));
        assert_eq!(parsed.parent, Pid::from_raw(70));
        assert_eq!(parsed.group, Pid::from_raw(69));
        assert_eq!((parsed.state, parsed.threads), (b'Z', 3));
        assert!(parsed.is_alive(), "other threads go on");
        assert_eq!(Process::parse(b"71 (cut"), None);
        assert_eq!(Process::parse(b"71 (cut) S 1"), None);
    }

    #[test]
    fn this_process_finds_itself() {
        let own = Process::find(Pid::this()).unwrap();
        assert_eq!(own.parent, Pid::parent());
        assert!(own.is_alive() && own.threads >= 1);
        assert!(
            table()
                .unwrap()
                .iter()
                .any(|process| process.pid == own.pid)
        );
    }

    #[test]
    fn foreign_proc_is_told_by_its_ids() {
        let own = Pid::from_raw(7);
        assert_eq!(foreign_pid("Name:\tx\nPid:\t7\nNSpid:\t7\n", own), None);
        assert_eq!(foreign_pid("Pid:\t7\n", own), None);
        assert_eq!(
            foreign_pid("Pid:\t4711\nNSpid:\t4711\t7\n", own),
            Some("4711")
        );
        let alike = "Pid:\t7\nNSpid:\t7\t7\n";
        assert_eq!(
            foreign_pid(alike, own),
            Some("7"),
            "ids may be equal by chance"
        );
    }

    #[test]
    fn children_are_found_until_they_are_reaped() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(has_children().unwrap(), "it runs");
        let strangers = ProcessTree::below_this_process().unwrap().strangers;
        assert!(strangers.contains(&pid));
        drop(child.stdin.take());
        waitid(Id::Pid(pid), ENDED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(has_children().unwrap(), "it is not reaped yet");
        child.wait().unwrap();
        let strangers = ProcessTree::below_this_process().unwrap().strangers;
        assert!(!strangers.contains(&pid));
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
        let found = descendants(&table, Pid::from_raw(2), &[Pid::from_raw(6)]);
        assert_eq!(found, HashSet::from([Pid::from_raw(4), Pid::from_raw(5)]));
    }
}
