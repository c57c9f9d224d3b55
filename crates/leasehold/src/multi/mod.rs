//! Several locks as one, and one lock with several permits.

mod guard_set;
mod lock_set;
mod semaphore;

pub use guard_set::GuardSet;
pub use lock_set::LockSet;
pub use semaphore::Semaphore;
