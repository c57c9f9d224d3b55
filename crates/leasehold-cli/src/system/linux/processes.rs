use std::fs;
use std::io;

use nix::unistd::Pid;

use crate::output::failure::Failure;
use crate::system::Process;

/// All processes that this one can see.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let mut table = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        // Ignore processes that have ended since the directory was read.
        table.extend(pid.map(Pid::from_raw).and_then(process));
    }
    Ok(table)
}

/// Reads the line of `pid`; `None` if there is no such process.
pub(crate) fn process(pid: Pid) -> Option<Process> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/<pid>/stat`. The name of the program is in parentheses and may contain
/// anything, including parentheses.
fn parse(stat: &[u8]) -> Option<Process> {
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
    Some(Process {
        pid: Pid::from_raw(pid),
        parent: Pid::from_raw(parent),
        group: Pid::from_raw(group),
        // A process whose first thread ended while others go on shows as a zombie too.
        is_alive: !matches!(state, b'Z' | b'X') || threads > 1,
    })
}

/// session, tty, tpgid, flags, four counters of faults, four of time, priority, nice.
const FIELDS_UP_TO_THREADS: usize = 14;

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Refuses a `/proc` in which this process would not find its descendants: after the loss of a lock
/// they would run on.
pub(crate) fn require_own_processes() -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_is_parsed_for_any_program_name() {
        let line = b"71 (a) b (c) Z 70 69 5 34816 71 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99 1 1\n";
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.pid, Pid::from_raw(71));
        assert_eq!(parsed.parent, Pid::from_raw(70));
        assert_eq!(parsed.group, Pid::from_raw(69));
        assert!(parsed.is_alive, "other threads go on");
        let line = b"71 (a) Z 70 69 5 34816 71 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 1 1\n";
        assert!(!parse(line).unwrap().is_alive);
        assert_eq!(parse(b"71 (cut"), None);
        assert_eq!(parse(b"71 (cut) S 1"), None);
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
}
