use std::io;
use std::time::Duration;

use windows_sys::Win32::System::WindowsProgramming::QueryInterruptTimePrecise;

/// Returns how long the machine has been up, sleep included.
pub(crate) fn since_boot() -> Duration {
    let mut ticks = 0;
    #[expect(
        unsafe_code,
        reason = "no safe wrapper reads a clock that counts sleep"
    )]
    // SAFETY: the function writes one number to `ticks`.
    unsafe {
        QueryInterruptTimePrecise(&raw mut ticks);
    }
    // A tick is 100 ns.
    Duration::from_nanos(ticks.saturating_mul(100))
}

/// Fails: Windows has no name for a boot.
pub(crate) fn boot() -> io::Result<Vec<u8>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "Windows does not say which boot this is",
    ))
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
