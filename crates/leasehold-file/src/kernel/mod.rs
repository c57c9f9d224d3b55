//! What the kernel offers: locks on files and on bytes, the list of all locks, and notifications.

pub(crate) mod file_system;
pub(crate) mod kernel_locks;
#[cfg(target_os = "linux")]
pub(crate) mod listener;
#[cfg(not(target_os = "linux"))]
#[path = "no_listener.rs"]
pub(crate) mod listener;
pub(crate) mod lock_file;
mod ofd;
pub(crate) mod range_lock;
pub(crate) mod retry_timer;
pub(crate) mod whole_lock;
