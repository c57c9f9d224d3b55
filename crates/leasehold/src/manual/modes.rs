//! More than a mutex: shared locks, permits, several names, a delay, and reentrancy.
//!
//! | you want | use |
//! |---|---|
//! | one holder at a time | a lock as it is: [`Mode::Exclusive`](crate::Mode::Exclusive) |
//! | many readers or one writer | [`Mode::Shared`](crate::Mode::Shared) for the readers |
//! | at most n holders at a time | [`Client::semaphore`](crate::Client::semaphore), or [`Mode::Permit`](crate::Mode::Permit) |
//! | several names at once, or none | [`Client::lock_all`](crate::Client::lock_all) |
//! | a pause after a holder that died | [`Lock::lock_delay`](crate::Lock::lock_delay) |
//! | a lock that outlives its process | [`Guard::into_handle`](crate::Guard::into_handle) |
//! | to write first, and then to read with others | [`Guard::downgrade`](crate::Guard::downgrade) |
//! | one guard for several parts of a program | [`Guard::reenter`](crate::Guard::reenter) |
//! | one of many clients that does the work, visible to all | [`Client::election`](crate::Client::election): [`leadership`](super::leadership) |
//!
//! [`Guarantees`](crate::store::Guarantees) says which of these a store offers. Anything else is an
//! [`Unsupported`](crate::ErrorKind::Unsupported) error before a request is sent.
//!
//! # Shared, and from exclusive to shared
//!
//! Readers hold a lock together, each with its own lease and fence. On every store of this project a
//! waiting writer keeps later readers out. A holder that has written may continue as a reader, and at no
//! moment could another writer enter. There is no way back except to release and acquire again: two readers
//! that both waited to become writers would deadlock.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, Mode, memory::MemoryStore};
//!
//! let locks = Client::new(MemoryStore::new());
//! let guard = locks.lock("index").acquire().await?;
//! // write
//! guard.downgrade().await?;
//! let reader = locks.lock("index").mode(Mode::Shared).acquire().await?;
//! // read, both of us
//! # drop((guard, reader));
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # Permits
//!
//! A lock with n permits is held by up to n owners, each with its own permit, lease and fence. An owner
//! that dies gives its permit back after one TTL, and the delay if there is one. Each request says how many
//! permits the lock has. While any permit is held, another number is an error and not a wait: it means that
//! two programs disagree.
//!
//! # Several names
//!
//! `lock_all` acquires all of the names or none. Every client acquires them in the same order, so two
//! clients that want the same names cannot deadlock. Its guards are lost together: if one lock is lost, the
//! set is lost.
//!
//! # A delay, for resources that cannot check fences
//!
//! A holder that was paused past its deadline may have sent something that is still on its way. With a
//! delay the lock stays closed for that much longer after such an end; after a release it is free at once.
//! The delay makes late writes rarer, but cannot exclude them: that takes a [fence](super::fencing). It
//! costs exactly the delay whenever a holder dies.
//!
//! # Reentrancy
//!
//! A lock is not reentrant by itself: a client that acquires a lock that it holds waits for itself. Call
//! [`reenter`](crate::Guard::reenter) on a guard to enter it once more. The lock is released when each of
//! these guards was released or dropped.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, ReleaseOutcome, memory::MemoryStore};
//!
//! let locks = Client::new(MemoryStore::new());
//! let outer = locks.lock("deploy").acquire().await?;
//! let inner = outer.reenter();
//! assert_eq!(outer.release().await?, ReleaseOutcome::StillHeld);
//! assert_eq!(inner.release().await?, ReleaseOutcome::Released);
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
