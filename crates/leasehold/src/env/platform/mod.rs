//! What differs between operating systems: the clock that counts suspend, the boot, the process, and the name of the
//! machine.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod system;
#[cfg(target_vendor = "apple")]
#[path = "apple.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    windows
)))]
compile_error!(
    "leasehold needs a clock that counts suspend, and knows those of Linux, macOS and Windows"
);

pub(crate) use system::{boot, pid, pid_namespace, remember_pid, since_boot, writes_of_thread};

/// Returns the name of the machine.
#[cfg(unix)]
pub(crate) fn host_name() -> Option<String> {
    let name = nix::unistd::gethostname().ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// Returns the name of the machine.
#[cfg(windows)]
#[expect(
    clippy::disallowed_methods,
    reason = "Windows sets this variable, and std has no other source"
)]
pub(crate) fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
