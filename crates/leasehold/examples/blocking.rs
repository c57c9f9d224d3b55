//! The same locks without async: each call blocks its thread until the answer arrives.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use leasehold::blocking::{Client, Guard};
use leasehold::{Error, memory::MemoryStore};

pub(crate) fn main() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new());
    let lock = locks.lock("migrate").wait(Duration::from_secs(30));
    let steps = lock.acquire()?.run(migrate)??;
    assert_eq!(steps, 3);

    let paid = locks
        .once("charge/4711")
        .run(|_| Ok::<_, Error>("paid"))??;
    assert_eq!(&*paid.bytes, b"paid");
    // Waits for releases in progress, for at most this long.
    locks.close(Duration::from_secs(5))
}

/// A thread cannot be cancelled, so the work itself checks the lock before each step.
fn migrate(guard: &Guard) -> Result<u32, Error> {
    for step in 1..=3 {
        guard.ensure(Duration::from_secs(1))?;
        println!("step {step} with fence {}", guard.fence());
    }
    Ok(3)
}
