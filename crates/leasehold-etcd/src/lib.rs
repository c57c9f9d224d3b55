//! Distributed locks on etcd, together with `etcdctl lock` and Go's `concurrency.Mutex`.
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::Error> {
//! use leasehold::Client;
//! use leasehold_etcd::EtcdStore;
//!
//! let locks = Client::new(EtcdStore::new("etcd://10.0.0.1,10.0.0.2,10.0.0.3")?);
//! let guard = locks.lock("invoices/2026-11").acquire().await?;
//! println!("fence {}", guard.fence());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! # Servers
//!
//! Leasehold supports etcd 3.4 and later. The URL names some or all members of one ensemble. A client stays with a
//! member that answers, and takes the next one otherwise.
//!
//! # Guarantees
//!
//! An ensemble keeps its locks while a majority of its members lives. It may end a lease early: a leader that was paused
//! for longer than the TTL can revoke a lease that the next leader renewed. A former holder can then believe for a
//! moment that it still has the lock. So [`Exclusion::Fence`](leasehold::store::Exclusion::Fence) is what the store
//! promises: only a resource that checks the fence excludes a former holder.
//!
//! etcd counts leases in whole seconds, and grants at least one and a half times its election timeout (two seconds by
//! default). After a change of leader each lease lives for its whole TTL again.
//!
//! # Work in etcd
//!
//! A transaction that compares the create revision of the lock's key takes effect only while the lock is held. This
//! is the strongest check there is, and needs no fence:
//!
//! ```text
//! etcdctl txn
//! create("invoices/2026-11/6d1f…") = "4711"
//!
//! put state/invoices done
//! ```
//!
//! `docs/stores/etcd.md` in the repository lists all keys, and what to do about common failures.
#![forbid(unsafe_code)]

mod client;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod locking;
mod proto;
mod settings;
mod store;
mod url;

pub use leasehold_credentials::{Password, rustls};
pub use store::{EtcdFacts, EtcdStore, ServerFacts, ServerStatus};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
