//! Waiting: who is served when, and what it costs.
//!
//! [`Lock::acquire`](crate::Lock::acquire) waits. On Redis, one server or a quorum, the waiter joins a queue, and
//! [`Guarantees::order`](crate::Guarantees::order) says `Fifo`: after a release the lock passes to
//! the waiter that began to wait first, by the servers' clocks. The server notifies it. If the waiter
//! belongs to the client that releases, the release grants the lock to it in the same step.
//!
//! | who | gets the lock |
//! |---|---|
//! | somebody who waits | in its turn |
//! | a newcomer, or [`try_acquire`](crate::Lock::try_acquire) | when the lock is free and not kept for anybody: mostly when nobody waits; once, after a lease that ended without a release |
//! | [`barging`](crate::Lock::barging) | ahead of all who wait, when the lock is free or only kept for somebody |
//! | a client of another library | when it asks while the lock is free, for which it is left free now and then: `RedisStore::foreign_gap` |
//! | a reader | together with other readers, but not past one that waits to have it alone, or for a permit |
//! | one who wants a [permit](crate::Semaphore) | in its turn as soon as one is free, however many are held; not past one that waits for it in another mode |
//!
//! A holder of another library tells nobody when it is done. The first in the queue then looks ten
//! times a second, and nobody else does.
//!
//! The file store has no queue. The kernel tells its waiters that a lock file was closed, and the
//! first to try wins; `order` says `Unordered`. But there too a reader, or one who wants a permit, that comes while a
//! writer waits lets one writer by.
//!
//! # Seeing it
//!
//! [`Client::waiters`](crate::Client::waiters) names who waits, in order.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, MemoryStore, Order};
//!
//! let locks = Client::new(MemoryStore::new());
//! assert_eq!(locks.guarantees().order, Order::Fifo);
//! let guard = locks.lock("deploy").acquire().await?;
//! assert!(locks.waiters("deploy").await?.is_empty());
//! guard.release().await?;
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # Giving up
//!
//! Drop the future, or set [`Lock::wait`](crate::Lock::wait): the wait leaves every queue, and what was
//! kept for it goes to the next.
