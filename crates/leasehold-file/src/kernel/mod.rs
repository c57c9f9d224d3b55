//! What the kernel offers: locks on files and on bytes, the list of all locks, and notifications.

pub(crate) mod file_system;
pub(crate) mod kernel_locks;
pub(crate) mod listener;
pub(crate) mod lock_file;
pub(crate) mod range_lock;
mod retry_timer;
