use std::io;
use std::time::Duration;

use nix::libc;
use nix::time::ClockId;

/// Returns how long the machine has been up, sleep included.
pub(crate) fn since_boot() -> Duration {
    // On these systems it counts sleep, unlike on Linux, and steps of the wall clock do not change it. The clock of
    // std does not count sleep.
    match ClockId::from_raw(libc::CLOCK_MONOTONIC_RAW).now() {
        Ok(time) => Duration::from(time),
        // macOS has had this clock since 10.12. Without it, no lease is safe.
        Err(errno) => unreachable!("clock_gettime failed: {errno}"),
    }
}

/// Returns what names this boot of the machine.
pub(crate) fn boot() -> io::Result<Vec<u8>> {
    // A UUID, and a zero at its end.
    let mut id = vec![0_u8; 64];
    let mut length = id.len();
    #[expect(unsafe_code, reason = "no safe wrapper reads values of the kernel")]
    // SAFETY: the name ends with a zero, and the kernel writes at most `length` bytes to `id`.
    let outcome = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            id.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    id.truncate(length);
    Ok(id)
}

/// Returns `None`: there are no PID namespaces.
pub(crate) fn pid_namespace() -> Option<(u64, u64)> {
    None
}

/// Returns `None`: the system does not count the writes of a thread.
pub(crate) fn writes_of_thread() -> Option<u64> {
    None
}

/// Returns the id of this process.
pub(crate) fn pid() -> u32 {
    std::process::id()
}

/// Does nothing: the system cannot zero memory in forked children.
pub(crate) fn remember_pid() {}
