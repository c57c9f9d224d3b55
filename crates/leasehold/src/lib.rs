//! Distributed locks as leases: one lock API over a local file, Redis, a Redlock quorum, PostgreSQL, etcd, and ZooKeeper.
//!
//! A [`Guard`] knows how long it can be trusted. Its deadline counts from before the client sent the
//! request, on a clock that continues while the machine sleeps. A background thread renews the lease. If
//! it cannot, the guard is *lost* before the store grants the lock to another client, and reports that by
//! itself. Every grant carries a [`Fence`], greater than all before it, for resources that check it.
//!
//! ```
//! use std::time::Duration;
//! use leasehold::{Client, memory::MemoryStore};
//!
//! # pollster::block_on(async {
//! let locks = Client::new(MemoryStore::new()); // or a FileStore, a RedisStore
//!
//! let guard = locks.lock("invoices/2026-11").wait(Duration::from_secs(5)).acquire().await?;
//! guard.ensure(Duration::from_secs(2))?; // before a step that must not happen without the lock
//! println!("UPDATE … WHERE fence <= {}", guard.fence());
//! guard.release().await?;
//!
//! if let Some(guard) = locks.lock("nightly").try_acquire().await? { // busy is not an error
//!     guard.run(async |_| { /* cancelled if the lock is lost */ }).await?; // and releases it
//! }
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! Calls work on any executor, and [`blocking`] offers the same locks without async.
//!
//! # Which store
//!
//! | you have | take | a holder that dies | promises |
//! |---|---|---|---|
//! | one machine | [`leasehold_file::FileStore`] | frees the lock at once | the kernel's: no lease, no deadline, nothing expires falsely |
//! | one Redis or Valkey | [`leasehold_redis::RedisStore`] | frees it after one TTL | as long as that server keeps its data; not across a failover |
//! | three or five independent ones | [`leasehold_redis::RedisStore`] of all | frees it after one TTL | while a majority keeps its data; a minority may be dead or frozen |
//! | PostgreSQL | [`leasehold_postgres::PostgresStore`] | frees it after one TTL | as long as that server keeps its data; a transaction of the same database can check the fence |
//! | etcd | [`leasehold_etcd::EtcdStore`] | frees it after one TTL | a consensus keeps the data; a lease may end early, so the fence decides |
//! | ZooKeeper | [`leasehold_zookeeper::ZooKeeperStore`] | frees it with its session | while a majority keeps its data |
//! | a test | [`memory::MemoryStore`] | frees it after one TTL | within one process |
//!
//! The crate [`leasehold_stores`] opens each of them by URL: `Client::connect("redis://10.0.0.1")`.
//! [`store::Guarantees`] says the same in types, for programs that refuse to run with less than they need.
//! [`manual::choosing`] says more.
//!
//! [`leasehold_etcd::EtcdStore`]: https://docs.rs/leasehold-etcd/latest/leasehold_etcd/struct.EtcdStore.html
//! [`leasehold_file::FileStore`]: https://docs.rs/leasehold-file/latest/leasehold_file/struct.FileStore.html
//! [`leasehold_postgres::PostgresStore`]: https://docs.rs/leasehold-postgres/latest/leasehold_postgres/struct.PostgresStore.html
//! [`leasehold_redis::RedisStore`]: https://docs.rs/leasehold-redis/latest/leasehold_redis/struct.RedisStore.html
//! [`leasehold_stores`]: https://docs.rs/leasehold-stores
//! [`leasehold_zookeeper::ZooKeeperStore`]: https://docs.rs/leasehold-zookeeper/latest/leasehold_zookeeper/struct.ZooKeeperStore.html
//!
//! # What it does not do
//!
//! - A lease cannot stop work that has already passed its check: a paused process or a delayed packet
//!   reaches the resource late. Only a resource that compares fences refuses it. [`manual::fencing`]
//!   shows how.
//! - A quorum notices members that forget their data or whose clocks are stepped. [`manual::failure`]
//!   lists what it cannot notice.
//! - All stores with servers serve waiters first come, first served. The file store notifies its waiters when a
//!   lock is free, but serves them in no order. [`manual::waiting`] says more.
//! - It is not a consensus store. The data that it keeps next to a lock is [small](record::HeldRecord), and only
//!   one holder at a time may write it. Two processes may both believe that they lead
//!   ([`manual::leadership`]).
//!
//! # The parts, in reading order
//!
//! A [`Client`] creates [`Lock`]s, and acquiring a lock returns a [`Guard`]. A [`Semaphore`] is a lock
//! that several owners can hold, and a [`LockSet`] acquires several locks at once. A [`Once`](once::Once) runs a
//! request once and keeps its result. A [`Handle`](handle::Handle) passes a held lock from a process that ends to another
//! one. An [`Election`](election::Election) makes one of many candidates the leader, visible to all. A resource that checks
//! fences implements [`Fenced`](fencing::Fenced); [`FenceGate`](fencing::FenceGate) is one.
//!
//! Operators see all locks with [`Client::list_locks`], and take one from a holder that hangs with
//! [`Client::break_lock`]. The metrics and spans of [`manual::observing`] show what a program's locks
//! cost it, and which locks it lost. [`Error`] has a kind, an effect and predicates: [`manual::errors`]. [`mod@env`] and
//! [`clock`] provide the time and random numbers. [`manual::recipes`] has whole programs, [`manual::testing`] shows how to
//! test code that uses locks, and [`manual::glossary`] defines the terms.
//!
//! Implementors read [`store`]: the trait [`Store`](store::Store) and its optional parts. Each numbered
//! obligation is a named test.
//!
//! # Features and size
//!
//! | feature | default | reason |
//! |---|---|---|
//! | `serde`: keys, fences, owners, times, breaks and handles can be serialized | off | few programs store them, and it adds a macro to build |
//!
//! Metrics and `tracing` have no feature. A feature never changes what a program does, and a library that another crate
//! of the program depends on must not lose its alerts by a setting elsewhere. They cost nothing until the program installs a
//! recorder or a subscriber, and are six of the crates below.
//!
//! | build, on Linux | crates |
//! |---|---|
//! | this crate, with the memory store | 42 |
//! | with `leasehold-file` | 48 |
//! | with `leasehold-redis`, without TLS | 59 |
//! | with `leasehold-redis` and TLS | 64 |
//! | with `leasehold-stores`, all stores and TLS | 145 |

pub mod blocking;
pub mod election;
pub mod env;
pub mod fencing;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod handle;
pub mod look;
pub mod manual;
pub mod member;
pub mod memory;
pub mod once;
pub mod record;
pub mod store;
pub mod telemetry;

mod acquire;
mod client;
mod guard;
mod lease;
mod lock;
mod multi;
mod runtime;
mod types;

pub use env::clock;

pub use client::{Client, ClientBuilder};
pub use guard::{Guard, GuardState, ReleaseOutcome};
#[doc(inline)]
pub use leasehold_types::{Effect, Error, ErrorKind, Fence, Key, LostReason, Mode};
pub use lock::Lock;
pub use multi::{GuardSet, LockSet, Semaphore};
