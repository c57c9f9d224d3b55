//! All stores by URL: the address of a store is a setting, and the program works on any of them.
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::Error> {
//! use leasehold::Client;
//! use leasehold_stores::Connect as _;
//!
//! let locks = Client::connect("redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3")?;
//! let guard = locks.lock("invoices/2026-11").acquire().await?;
//! println!("fence {}", guard.fence());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! Without async code, it is the same call on the other client:
//!
//! ```
//! use leasehold::blocking::Client;
//! use leasehold_stores::Connect as _;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let url = format!("file://{}", folder.path().display());
//! let locks = Client::connect(&url)?; // "file:///var/lib/app/locks"
//! locks.lock("nightly").acquire()?.run(|_| println!("alone on this machine"))?;
//! # Ok::<(), leasehold::Error>(())
//! ```
//!
//! [`open`] returns the store, for a client with [settings](leasehold::Client::builder) of its own. [`AnyStore`] says
//! which store the addresses name, for programs that need more of one kind. With the feature `env`, `from_env` finds the store
//! as the command does: by `LEASEHOLD_STORE`, or by its configuration file.
//!
//! # Addresses
//!
//! | address | store | feature |
//! |---|---|---|
//! | `file:///folder` | lock files in this folder, for one machine | `file` |
//! | `redis://host`, `rediss://host` (TLS), `unix:///socket` | one Redis or Valkey | `redis` |
//! | `redis://a,redis://b,redis://c` | a quorum of independent Redis servers | `redis` |
//! | `postgres://user@host/database` | a PostgreSQL server, with its standbys as `postgres://a,b/database` | `postgres` |
//! | `etcd://a,b,c`, `etcds://a,b,c` (TLS) | an etcd ensemble | `etcd` |
//! | `zk://a,b,c`, `zks://a,b,c` (TLS) | a ZooKeeper ensemble | `zookeeper` |
//!
//! These are the addresses of the command `leasehold`, which reads them with this crate. A program and a script with
//! the same address share their locks. The crate of each store documents the parameters of its URLs.
//!
//! A quorum whose servers are new needs `leasehold init`, or [`AnyStore::init`], once. Otherwise its servers have no vote for
//! the first minute, and locks wait or fail. PostgreSQL needs the same to create its tables.
//!
//! # Features
//!
//! Each kind of store is a feature, and all are on by default. A program that turns them off lists those that it uses:
//!
//! ```toml
//! leasehold-stores = { version = "0.1", default-features = false, features = ["redis", "ring"] }
//! ```
//!
//! `env` adds `from_env`, and a parser of TOML. It is off by default.
//!
//! `ring` or `aws-lc-rs` is the cryptography of TLS. Without one, an address with TLS is an error.
//!
//! Lock files need Linux or macOS. A build for Windows leaves `file` out.
//!
//! A program that always uses one kind of store needs only the crate of that store.
#![forbid(unsafe_code)]

mod any_store;
#[cfg(feature = "env")]
#[doc(hidden)]
pub mod config;
mod connect;
#[cfg(feature = "file")]
mod folder;
mod kind;

pub use any_store::{AnyStore, open, split};
#[cfg(feature = "env")]
pub use config::from_env;
pub use connect::Connect;
#[cfg(feature = "file")]
pub use folder::Folder;
