#![expect(unsafe_code, reason = "no safe wrapper reads the table of processes")]

use std::io;
use std::mem::{MaybeUninit, size_of};

use nix::libc::{self, c_int, pid_t, proc_bsdshortinfo};
use nix::unistd::Pid;

use crate::system::Process;

pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let ids = ids()?;
    // Ignore processes that have ended since their ids were read.
    Ok(ids
        .into_iter()
        .filter_map(|id| process(Pid::from_raw(id)))
        .collect())
}

fn ids() -> io::Result<Vec<pid_t>> {
    let mut ids: Vec<pid_t> = vec![0; ROOM];
    loop {
        let size = (ids.len() * size_of::<pid_t>()) as c_int;
        // SAFETY: the kernel writes at most `size` bytes to `ids`, which has as many.
        let count = unsafe { libc::proc_listallpids(ids.as_mut_ptr().cast(), size) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        if count < ids.len() {
            ids.truncate(count);
            return Ok(ids);
        }
        // There may be more.
        ids.resize(2 * ids.len(), 0);
    }
}

/// More processes than most machines have.
const ROOM: usize = 2048;

pub(crate) fn process(pid: Pid) -> Option<Process> {
    let mut info = MaybeUninit::<proc_bsdshortinfo>::uninit();
    let size = size_of::<proc_bsdshortinfo>() as c_int;
    // SAFETY: the kernel writes at most `size` bytes to `info`, which has as many.
    let written = unsafe {
        libc::proc_pidinfo(
            pid.as_raw(),
            libc::PROC_PIDT_SHORTBSDINFO,
            0,
            info.as_mut_ptr().cast(),
            size,
        )
    };
    if written != size {
        return None;
    }
    // SAFETY: the kernel has written all of it.
    let info = unsafe { info.assume_init() };
    let id = |number: u32| Pid::from_raw(number.cast_signed());
    Some(Process {
        pid: id(info.pbsi_pid),
        parent: id(info.pbsi_ppid),
        group: id(info.pbsi_pgid),
        is_alive: info.pbsi_status != libc::SZOMB,
    })
}
