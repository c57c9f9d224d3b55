//! Whether the caller closed stdout.
//!
//! Reviewed for: what runs before `main` makes one system call, and stores one flag.
#![expect(
    unsafe_code,
    reason = "no safe code runs before the standard library replaces a closed stdout"
)]

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

/// Whether this process was started without stdout.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before the standard library, which opens `/dev/null` in place of a closed stdout. Some callers open it
/// themselves in the same way, to drop the output. After the start, both look alike.
#[used]
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    // SAFETY: the call reads a flag of a descriptor, or fails if it is not open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}
