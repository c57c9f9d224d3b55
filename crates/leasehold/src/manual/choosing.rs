//! Which store to choose.
//!
//! **One machine.** Take the file store. The kernel holds the lock for as long as the process
//! lives and frees it when it dies, however it dies. There is no lease, so nothing can expire under
//! a slow holder, and there is no deadline to watch. It also excludes `flock(1)`.
//!
//! **Several machines, and two holders at once would be a nuisance.** Take one Redis. A lock costs
//! one round trip. It is as available as that server, and it forgets locks when that server loses
//! its data or fails over to a replica that lags behind.
//!
//! **Several machines, and one server must not be able to stop everything.** Take a quorum of
//! three or five Redis servers that share nothing: no replication between them, other machines,
//! other racks. A lock costs one round trip to the slowest of the fastest majority. Two of five
//! may be dead or frozen. An even number buys nothing over the odd number below it. Two servers
//! promise less than three ([`EveryMember`](crate::store::Exclusion::EveryMember)): by default they are
//! trusted after any restart.
//!
//! **You run PostgreSQL, etcd, or ZooKeeper.** Take it. PostgreSQL is one server, as one Redis is, and the only store
//! whose lock and data can be in one transaction: a late write then cannot commit. etcd and ZooKeeper go on while a
//! majority of their servers works. etcd may end a lease early after its leader was paused, and says so
//! ([`Fence`](crate::store::Exclusion::Fence)). On ZooKeeper all locks of a client live in one session
//! ([`WithSession`](crate::store::Expiry::WithSession)), so a lock has no handle and no delay.
//!
//! **Two holders at once would be a disaster.** Take any of them, *and* let the resource check the fence:
//! [`fencing`](super::fencing). No lock service can exclude it without the resource.
//!
//! **Names.** Lock what is contended, and use few names. On Redis each name takes about 200 bytes on each
//! server until 7 days after its last use, because the server remembers its fences for that long. A million
//! new names a day, such as order numbers, take 1.4 GB. Map the ids to a fixed number of names instead, for
//! example `orders/{id % 4096}`. Two orders with the same remainder then exclude each other; with a hundred
//! times as many names as locks held at once, few of them meet.
//!
//! A program that needs a certain guarantee can check for it:
//!
//! ```
//! use leasehold::{Client, memory::MemoryStore};
//! use leasehold::store::Exclusion;
//!
//! let locks = Client::new(MemoryStore::new());
//! if let Exclusion::OneServer | Exclusion::EveryMember = locks.guarantees().exclusion {
//!     panic!("this service must not depend on what a single Redis remembers");
//! }
//! ```
