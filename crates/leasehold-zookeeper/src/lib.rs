//! Distributed locks on an ensemble of ZooKeeper, together with Curator's `InterProcessMutex`.
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::Error> {
//! use leasehold::Client;
//! use leasehold_zookeeper::ZooKeeperStore;
//!
//! let locks = Client::new(ZooKeeperStore::new("zk://10.0.0.1,10.0.0.2,10.0.0.3/locks?timeout=10s")?);
//! let guard = locks.lock("invoices/2026-11").acquire().await?;
//! println!("fence {}", guard.fence());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! # Sessions
//!
//! All locks of a client live in one session of the servers, and end with it. The TTL of a lock is a wish: the server
//! grants a session timeout within its limits, and a guard is valid for the TTL or half of that timeout after each
//! renewal, whichever is shorter. The session moves to another server if one fails, and keeps its locks and places.
//!
//! # Work in ZooKeeper
//!
//! A transaction that first checks the node of the holder takes effect only while the lock is held.
//! [`ZooKeeperStore::holder_node`] returns that node.
//!
//! `docs/stores/zookeeper.md` in the repository lists all nodes, and what to do about common failures.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod client;
mod examine;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod queue;
mod store;
mod url;

pub use examine::{Examination, ServerFacts, SessionFacts};
pub use leasehold_credentials::{Password, rustls};
pub use store::ZooKeeperStore;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
