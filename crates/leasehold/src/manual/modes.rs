//! More than a mutex: shared locks, permits, several names, a delay, and holding what is held.
//!
//! | you want | take |
//! |---|---|
//! | one at a time | a lock as it is: [`Mode::Exclusive`](crate::Mode::Exclusive) |
//! | many readers or one writer | [`Mode::Shared`](crate::Mode::Shared) for the readers |
//! | at most n at a time | [`Client::semaphore`](crate::Client::semaphore), or [`Mode::Permit`](crate::Mode::Permit) |
//! | several names at once, or none | [`Client::lock_all`](crate::Client::lock_all) |
//! | a pause after a holder that died | [`Lock::lock_delay`](crate::Lock::lock_delay) |
//! | a lock that outlives its process | [`Guard::into_handle`](crate::Guard::into_handle), [`Guard::leave_for`](crate::Guard::leave_for) |
//! | to write first, and then to read with others | [`Guard::downgrade`](crate::Guard::downgrade) |
//! | one hold for several parts of a program | [`Guard::share`](crate::Guard::share) |
//! | one of many that does the work, for all to see | [`Client::election`](crate::Client::election): [`leadership`](super::leadership) |
//! | a value that is not to be used without the lock | [`Guarded`](crate::Guarded) |
//!
//! [`Guarantees`](crate::Guarantees) says what of it a store offers; what it does not is an
//! [`Unsupported`](crate::ErrorKind::Unsupported) error before anything is sent.
//!
//! # Shared, and from exclusive to shared
//!
//! Readers hold a lock together, each with a lease and a fence of its own. On every store of this
//! project a writer that waits keeps later readers out. A holder that has written may go on as a reader, and at
//! no moment could another writer enter. The way back is to release and to ask again: two readers
//! that both waited to become writers would wait for each other for ever.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, MemoryStore, Mode};
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
//! A lock with n permits is held by up to n owners, each with a permit, a lease and a fence of its own;
//! one that dies gives its permit back after one TTL, and the delay if there is one. Whoever asks says how many permits there are. While
//! any is held, another number is an error, not a wait: it would be two programs that disagree.
//!
//! # Several names
//!
//! `lock_all` takes all of the names or none, in one order for everybody, so that two that want the
//! same names do not wait for each other for ever. Its guards are lost together: one that is lost is the
//! loss of the set.
//!
//! # A delay, for resources that cannot check fences
//!
//! A holder that stood still past its deadline may have sent something that is still on its way. With a
//! delay the lock stays shut for so much longer after such an end; after a release it is free at
//! once. It makes late writes rarer, by the length of the delay, and cannot exclude them: that takes a
//! [fence](super::fencing). It costs exactly the delay whenever a holder dies.
//!
//! # Reentrancy
//!
//! A lock is not reentrant by itself: who asks for what it holds waits for itself. What is to be held
//! together is said: each [`share`](crate::Guard::share) of a guard is one more holder of the same lease,
//! and the last one to end frees it.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, Ended, MemoryStore};
//!
//! let locks = Client::new(MemoryStore::new());
//! let outer = locks.lock("deploy").acquire().await?;
//! let inner = outer.share();
//! assert_eq!(outer.release().await?, Ended::StillShared);
//! assert_eq!(inner.release().await?, Ended::Released);
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
