use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

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
