//! A mutex whose users never wait for each other's work.

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError, TryLockError};

/// A value behind a mutex, and work on it. One thread does the work of all.
///
/// A thread that wants the work done while another one has the value leaves a note and continues. The other thread sees
/// the note once it has freed the value, and does the work. Both methods look at the note, and there is no other way to
/// the value, so no note is lost.
#[derive(Debug)]
pub(super) struct Combining<T> {
    value: Mutex<T>,
    /// Another thread wants the work done. Each access is an exchange: it sees the newest note, and orders the look after
    /// the freeing of the mutex.
    is_due: AtomicBool,
}

impl<T> Combining<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            is_due: AtomicBool::new(false),
        }
    }

    /// Does the work, or leaves it to the thread that has the value.
    pub(super) fn work(&self, work: impl Fn(MutexGuard<'_, T>)) {
        if let Some(value) = self.take() {
            work(value);
            self.finish(work);
        }
    }

    /// Waits for the value and uses it. Then does the work that another thread left meanwhile.
    pub(super) fn with<R>(
        &self,
        with: impl FnOnce(MutexGuard<'_, T>) -> R,
        work: impl Fn(MutexGuard<'_, T>),
    ) -> R {
        let result = with(self.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.finish(work);
        result
    }

    /// The value is free. Does the work that was left to this thread.
    fn finish(&self, work: impl Fn(MutexGuard<'_, T>)) {
        while self.is_due.swap(false, Ordering::AcqRel) {
            let Some(value) = self.take() else { return };
            work(value);
        }
    }

    /// Takes the value, or leaves a note to the thread that has it.
    fn take(&self) -> Option<MutexGuard<'_, T>> {
        loop {
            match self.value.try_lock() {
                Ok(value) => return Some(value),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                // The thread that had the value may have freed it just before it could see the note.
                Err(TryLockError::WouldBlock) => {
                    if self.is_due.swap(true, Ordering::AcqRel) {
                        return None;
                    }
                }
            }
        }
    }
}
