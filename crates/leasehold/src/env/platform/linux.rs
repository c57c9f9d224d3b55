use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use nix::libc;

/// Returns how long the machine has been up, suspend included.
pub(crate) fn since_boot() -> Duration {
    match nix::time::ClockId::CLOCK_BOOTTIME.now() {
        Ok(time) => Duration::from(time),
        // Linux has had this clock since 2.6.39. Without it, no lease is safe.
        Err(errno) => unreachable!("clock_gettime failed: {errno}"),
    }
}

/// Returns what names this boot of the machine.
pub(crate) fn boot() -> io::Result<Vec<u8>> {
    let mut boot = fs::read("/proc/sys/kernel/random/boot_id")?;
    // Another time namespace may count from a different origin. Kernels before 5.6 have only one.
    if let Ok(namespace) = fs::read_link("/proc/self/ns/time") {
        boot.extend_from_slice(namespace.as_os_str().as_encoded_bytes());
    }
    Ok(boot)
}

/// Returns what names the PID namespace of this process, if `/proc` tells.
pub(crate) fn pid_namespace() -> Option<(u64, u64)> {
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?;
    Some((namespace.dev(), namespace.ino()))
}

/// Returns how often this thread has asked the kernel to write, if `/proc` tells.
pub(crate) fn writes_of_thread() -> Option<u64> {
    let counts = fs::read_to_string("/proc/thread-self/io").ok()?;
    let writes = counts
        .lines()
        .find_map(|line| line.strip_prefix("syscw: "))?;
    writes.parse().ok()
}

/// The id of this process, or 0 if it is not known yet. Null: there is no such memory.
///
/// An atomic pointer, since a child may be forked while another thread is about to set it.
static PID: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Returns the id of this process. No system call, if [`remember_pid`] found memory for it.
///
/// A lock asks four times, to see whether it runs in a forked child. The calls took a tenth of what a client spends, and far more in
/// sandboxes that intercept them. Handlers of `fork` in the C library miss a child that `clone` makes.
pub(crate) fn pid() -> u32 {
    #[expect(unsafe_code, reason = "the memory does not come from Rust")]
    // SAFETY: what the pointer leads to is never unmapped, and only accessed as an atomic number.
    let Some(known) = (unsafe { PID.load(Ordering::Acquire).as_ref() }) else {
        return std::process::id();
    };
    match known.load(Ordering::Relaxed) {
        0 => {
            let pid = std::process::id();
            known.store(pid, Ordering::Relaxed);
            pid
        }
        pid => pid,
    }
}

/// Finds memory for the result of [`pid`], if the kernel can zero memory in forked children.
pub(crate) fn remember_pid() {
    if PID.load(Ordering::Acquire).is_null()
        && let Some(memory) = zeroed_in_children(size_of::<AtomicU32>())
    {
        // If two threads are here, the memory of one of them stays unused.
        PID.store(memory.cast(), Ordering::Release);
    }
}

/// Returns memory that the kernel zeroes in forked children, as Linux has done since 4.14. It is never unmapped.
#[expect(
    unsafe_code,
    reason = "no safe wrapper checks that the kernel knows the advice"
)]
fn zeroed_in_children(size: usize) -> Option<*mut libc::c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses an address that is free.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the memory is new, and nothing uses it. Emulators like QEMU accept advice that they do not know, and
    // ignore it: they accept -1 as well.
    let is_zeroed = unsafe {
        libc::madvise(memory, size, -1) != 0
            && libc::madvise(memory, size, libc::MADV_WIPEONFORK) == 0
    };
    if !is_zeroed {
        // SAFETY: nothing uses the memory.
        unsafe { libc::munmap(memory, size) };
        return None;
    }
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_id_is_that_of_the_process() {
        remember_pid();
        assert!(
            !PID.load(Ordering::Acquire).is_null(),
            "the kernel zeroes memory in forked children"
        );
        assert_eq!([pid(), pid()], [std::process::id(); 2]);
    }
}
