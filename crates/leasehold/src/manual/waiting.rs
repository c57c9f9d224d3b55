//! Waiting: the order in which waiters are served, and its cost.
//!
//! [`Lock::acquire`](crate::Lock::acquire) waits. On Redis, one server or a quorum, the waiter joins a queue, and
//! [`Guarantees::order`](crate::store::Guarantees::order) says `Fifo`: after a release the lock passes to
//! the waiter that began to wait first, by the servers' clocks. The server notifies it. If the waiter
//! belongs to the client that releases, the release grants the lock to it in the same step.
//!
//! | client | gets the lock |
//! |---|---|
//! | a waiter | in queue order |
//! | a newcomer, or [`try_acquire`](crate::Lock::try_acquire) | when the lock is free and not reserved: usually when there are no waiters; once, after a lease that ended without a release |
//! | [`barging`](crate::Lock::barging) | ahead of all waiters, when the lock is free or only reserved |
//! | a client of another library | when it asks while the lock is free; the server leaves it free for 150 ms every 5 s, and every second for an hour after a client saw a holder of another library |
//! | a reader | together with other readers, but not ahead of a waiting writer, or of a waiter for a permit |
//! | a waiter for a [permit](crate::Semaphore) | in queue order as soon as a permit is free, however many are held; not ahead of a waiter in another mode |
//!
//! A holder of another library notifies no waiter when it releases the lock. The first waiter then polls
//! every 25 ms, and the others do not poll.
//!
//! The file store has no queue. The kernel notifies its waiters that a lock file was closed, and the first
//! one to try gets the lock; `order` says `Unordered`. But here too, a client that asks for a shared lock
//! or a permit while a writer waits lets one writer go first.
//!
//! # Seeing it
//!
//! [`Client::waiters`](crate::Client::waiters) lists the waiters in order.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, memory::MemoryStore};
//! use leasehold::store::Order;
//!
//! let locks = Client::new(MemoryStore::new());
//! assert_eq!(locks.guarantees().order, Order::Fifo);
//! let guard = locks.lock("deploy").acquire().await?;
//! assert!(locks.waiters("deploy").await?.is_empty());
//! guard.release().await?;
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # How long a call waits
//!
//! | call | if another client holds the lock | if the store does not answer |
//! |---|---|---|
//! | [`try_acquire`](crate::Lock::try_acquire) | returns `None` at once | fails after a third of the TTL, at most 2 s |
//! | `try_acquire` with a wait | returns `None` when the wait is over | fails when the wait is over |
//! | [`acquire`](crate::Lock::acquire) | waits | waits; gives up after one TTL if the store never answered this client |
//! | `acquire` with a [`wait`](crate::Lock::wait) | fails as [`Busy`](crate::ErrorKind::Busy) when the wait is over | fails when the wait is over |
//! | `acquire` with a wait of zero | fails as `Busy` at once | as `try_acquire` |
//! | [`release`](crate::Guard::release), [`run`](crate::Guard::run) after its body, [`resign`](crate::election::Leadership::resign) | – | returns after two thirds of the TTL, at most 4 s; after 100 ms if the guard is lost |
//!
//! A store that has not answered yet has 200 ms, even if the wait is shorter.
//!
//! An error of kind `Busy` names the [`holder`](crate::Error::holder), if the store knows it. While a call waits,
//! [`Client::events`](crate::Client::events) says why: the lock is busy, or the store does not answer.
//!
//! # A wait that is not polled
//!
//! A waiter's turn may come while its runtime is blocked, or while a branch of a `select!` takes long. If the caller does
//! not poll the wait for a third of the TTL after it was woken, the client releases what the wait has, so that others get
//! the lock. The next poll begins anew, at the end of the queue. A call is a wait once its caller has polled the answer that the lock
//! is busy. If it is granted the lock before, and not polled, the lock stays closed for one TTL.
//!
//! # Ending a wait
//!
//! Drop the future, or set [`Lock::wait`](crate::Lock::wait). The waiter leaves every queue, and a lock
//! that was reserved for it passes to the next waiter.
