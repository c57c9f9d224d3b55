//! Testing code that uses locks.
//!
//! Pass the [`Client`](crate::Client) to the code, and give it one of a [`MemoryStore`](crate::memory::MemoryStore) in tests.
//! It needs no server, and keeps all promises within the process.
//!
//! | to test | do this |
//! |---|---|
//! | another machine | make a second client of a clone of the store |
//! | a lost lock | call [`Guard::give_up`](crate::Guard::give_up): no test waits for a lease to end |
//! | a lock that an operator broke | call [`Client::break_lock`](crate::Client::break_lock) on another client |
//! | a store that lost its data | call [`MemoryStore::forget_everything`](crate::memory::MemoryStore::forget_everything) |
//! | a store that does not answer | put the `FaultyStore` of `leasehold-testkit` in front, as [below](#a-store-that-does-not-answer) |
//! | leases and waits that take long | move the time, as below |
//!
//! A client has a thread and a clock of its own, which do not know tokio's paused time. A `timeout` of a paused test would be
//! over before the client's thread can act. So such a test runs the client on its runtime, with the virtual clock of
//! `leasehold-testkit`:
//!
//! ```
//! use std::time::Duration;
//! use leasehold::{Client, memory::MemoryStore};
//! use leasehold_testkit::virtual_env;
//!
//! // #[tokio::test(start_paused = true)]
//! async fn guard_is_renewed_for_an_hour() -> Result<(), leasehold::Error> {
//!     let (store, env) = (MemoryStore::new(), virtual_env(1)); // the seed of its random numbers
//!     let client = || Client::builder(store.clone()).env(env.clone()).on_current_runtime().build();
//!     let (ours, theirs) = (client(), client());
//!     let guard = ours.lock("report").acquire().await?;
//!     let waiting = theirs.lock("report").wait(Duration::from_secs(3600)).acquire();
//!     assert!(waiting.await.unwrap_err().is_busy()); // an hour passes at once
//!     assert!(guard.is_valid());
//!     Ok(())
//! }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
//! # runtime.unwrap().block_on(guard_is_renewed_for_an_hour()).unwrap();
//! ```
//!
//! # A store that does not answer
//!
//! A `FaultyStore` freezes, cannot be reached, or is slow, until the test removes the fault:
//!
//! ```
//! use std::time::Duration;
//! use leasehold::{Client, LostReason, memory::MemoryStore};
//! use leasehold_testkit::{Fault, FaultyStore, virtual_env};
//!
//! // #[tokio::test(start_paused = true)]
//! async fn work_stops_while_the_store_is_down() -> Result<(), leasehold::Error> {
//!     let store = FaultyStore::new(MemoryStore::new());
//!     let env = virtual_env(1);
//!     let locks = Client::builder(store.clone()).env(env).on_current_runtime().build();
//!     let guard = locks.lock("report").acquire().await?;
//!     store.set(Fault::Unreachable);
//!     let stopped = guard.run(async |_| std::future::pending::<()>().await).await;
//!     assert_eq!(stopped.unwrap_err().lost_reason(), Some(LostReason::Unreachable));
//!     let refused = locks.lock("report").wait(Duration::from_secs(3)).acquire().await;
//!     assert!(refused.unwrap_err().is_unreachable()); // answer 503, say
//!     store.set(Fault::None);
//!     locks.lock("report").acquire().await?;
//!     Ok(())
//! }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
//! # runtime.unwrap().block_on(work_stops_while_the_store_is_down()).unwrap();
//! ```
//!
//! # A whole program with its tests
//!
//! ```no_run
#![doc = include_str!("../../examples/testing.rs")]
//! ```
