use std::fs;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};

/// The letter of a process's state; `None` if it is gone, which a zombie is too.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    (state != 'Z').then_some(state)
}

/// The id of a process's parent and of its group.
pub(crate) fn parent_and_group(pid: i32) -> (i32, i32) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(1);
    let mut next = || fields.next().unwrap().parse().unwrap();
    (next(), next())
}

/// The guardian of a command that was started by `run`.
pub(crate) fn guardian_of(command: i32) -> i32 {
    let (guardian, _) = parent_and_group(command);
    let arguments = fs::read_to_string(format!("/proc/{guardian}/cmdline")).unwrap();
    assert!(arguments.contains("__guardian"), "{arguments:?}");
    guardian
}

#[track_caller]
pub(crate) fn until_gone(pid: i32) {
    until(&format!("the end of process {pid}"), || {
        state(pid).is_none()
    });
}

#[track_caller]
pub(crate) fn until_stopped(pid: i32) {
    until(&format!("process {pid} is stopped"), || {
        state(pid) == Some('T')
    });
}

#[track_caller]
pub(crate) fn until_running(pid: i32) {
    until(&format!("process {pid} goes on"), || {
        state(pid).is_some_and(|state| state != 'T')
    });
}

/// Kills every process of the session that `leader` began.
pub(crate) fn kill_session(leader: i32) {
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let pid = Pid::from_raw(pid);
        if getsid(Some(pid)) == Ok(Pid::from_raw(leader)) {
            // A process that has ended meanwhile need not be killed.
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// Waits until this time has passed.
pub(crate) fn outlast(span: Duration) {
    let began = SystemClock.now();
    until(&format!("{span:?} to pass"), || {
        SystemClock.now().since(began) > span
    });
}
