use leasehold::{Key, LostReason};

use crate::locks::borrowed_lock::BorrowedLock;

/// A lock that is lost, and why.
pub(crate) struct LostLock {
    pub(crate) lock: String,
    pub(crate) reason: String,
    /// Whether the store may know an operator who broke it. A release does not say why the lock was lost.
    pub(crate) broken: bool,
}

impl LostLock {
    pub(crate) fn of((key, reason): (Key, LostReason)) -> Self {
        Self {
            lock: key.to_string(),
            reason: reason.to_string(),
            broken: matches!(reason, LostReason::Broken | LostReason::Gone),
        }
    }

    pub(super) fn borrowed(borrowed: &BorrowedLock, reason: &str) -> Self {
        Self {
            lock: borrowed.lock().name().to_owned(),
            reason: reason.to_owned(),
            broken: false,
        }
    }
}
