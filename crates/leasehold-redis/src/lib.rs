//! Distributed locks on Redis and Valkey: one server, or a Redlock quorum of several.
//!
//! [`RedisStore`] takes locks. [`RedisMember`] is one server, for its status, its locks, and the changes
//! that operators make.
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::Error> {
//! use leasehold::Client;
//! use leasehold_redis::RedisStore;
//!
//! let locks = Client::new(RedisStore::new(["rediss://locks:secret@10.0.0.1"])?);
//! let guard = locks.lock("invoices/2026-11").acquire().await?;
//! println!("fence {}", guard.fence());
//! guard.release().await?;
//!
//! let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
//! let quorum = RedisStore::new(urls)?;
//! quorum.init().await?; // once, when the servers are new: otherwise they have no vote for a minute
//! let locks = Client::new(quorum);
//! # Ok(()) }
//! ```
//!
//! # Servers
//!
//! Leasehold supports Redis 6.2 and later, and Valkey. The server must be a primary, not a replica, and not
//! a node of a Redis Cluster. On any other server the first lock fails, with the reason.
//!
//! # Waiting in turn
//!
//! Waiters are in a queue next to the lock, in the order of their tickets. When the lock becomes free, the
//! server notifies the first waiter on the channel `leasehold:inbox:<client>`. Each client subscribes to
//! its channel on the connection of its requests (RESP3). An entry counts while its client sends a
//! heartbeat each second and its connection listens. Behind a server or proxy that does not support RESP3,
//! a waiter learns of its turn from a heartbeat, once a second. A client enters the queue again after `DEL
//! leasehold:queue:{…}:…`. `docs/wire.md` in the repository specifies all keys, scripts and messages.
//!
//! # Members of a quorum
//!
//! A member keeps a member record: the hash `leasehold:member_record`, one for each database. The clients of its
//! quorum write it, and it never expires. It says which quorum the server belongs to, since when the server
//! has lost nothing, and when it first saw the data generations of the other members. Every answer includes the
//! run of the server and the epoch of the record at the time of the request. After a restart, FLUSHALL,
//! SWAPDB, or DEL of the record, the next answer shows other values. A record that makes no sense is an
//! error that names the field; `DEL leasehold:member_record` repairs it.
//!
//! The client asks for the run of the server once per connection, because a restart ends every connection.
//! So give it the address of the server, or of a proxy that closes the client's connection when the server
//! closes its own (HAProxy and stunnel in TCP mode, most load balancers). A Redis-aware proxy that
//! reconnects by itself hides a restart. A server that comes back with the record from an old RDB file and
//! without newer locks then keeps its vote, and a lock can be granted twice. The client notices such a
//! restart only when it asks the server for its status, as `leasehold members` and `Client::health` do. It
//! then reports the proxy and reconnects.
//!
//! A member that restarts has a vote at once if it keeps everything that it acknowledges: `appendonly yes`,
//! `appendfsync always`, `no-appendfsync-on-rewrite no`. A server with `maxmemory` and a `maxmemory-policy`
//! other than `noeviction` may evict locks, so it cannot be a member. The client of a single server refuses
//! such a server, too, unless the URL says `?evicting=accept`. Without `maxmemory`, a server evicts nothing.
//!
//! # Records
//!
//! The record of a lock is two keys next to the lock. The hash `leasehold:record:{…}:…` has the value, and
//! expires when its retention is over. The string `leasehold:version:{…}:…` has the greatest fence that
//! opened or wrote the record. It expires 7 days after the last of these operations, as the lock's counter
//! does. A single server keeps records as it keeps its data: if it loses data, it loses records.
//!
//! # Other libraries on the same keys
//!
//! An exclusive lock is a string under the lock's own name (after `?prefix=`). It is written by `SET NX PX`
//! and deleted by comparison, as in redis-py, redsync, node-redlock, rslock, aioredlock, redlock-py and
//! bsm/redislock. All of these libraries and this one exclude each other. If the lock has another type, as
//! Redisson's hash does, the error says so. Readers and permit holders of this library keep out writers of
//! all these libraries: the lock's name has the value `leasehold:shared` or `leasehold:permits:<n>` until
//! the last of their leases ends.
//!
//! # Locks that an operator broke
//!
//! After a break, the lock's name has the value `leasehold:broken:<owner>` for the rest of the lease. It
//! keeps out every other client, including those of other libraries. For 7 days the hash
//! `leasehold:broken:{…}:<lock>` next to the lock says who broke it, when and why. The record of the
//! counter notes, with a score below 0, that the owner's lease is broken. It also has the fence of an
//! exclusive lease, unless that is the first fence above the instant that the owner names: then readers
//! derive it.
//!
//! # What a user of the server must be allowed
//!
//! ```text
//! ACL SETUSER locks on >secret ~* +info +config|get +time +set +get +mget +del +exists +type +pttl +pexpire +pexpireat +zadd +zincrby +zscore +zmscore +zrange +zrangebyscore +zcount +zrank +zrem +zremrangebyscore +hget +hset +hdel +hgetall +scan +evalsha +script|load +subscribe +publish &leasehold:inbox:*
//! ```
//!
//! With `?prefix=app:`, the keys may be narrowed from `~*` to `~app:* ~leasehold:*`. A database other than
//! 0 needs `+select`. Some rights are needed only for some purposes:
//!
//! - `+scan` and `+mget` are only for listing locks, `+type` only for naming the type of a foreign lock.
//! - `+hget`, `+hset` and `+hgetall` are for the member record of a quorum, and for showing who holds a
//!   lock. Without them the server works as a store of its own, but has no vote as a member of a quorum.
//!   With `+hdel` they are for permits and records, too.
//! - `+subscribe`, `+publish` and the channels `&leasehold:inbox:*` are for notifying waiters. Without them
//!   a waiter learns of its turn from a heartbeat, once a second.
//! - Without `+config|get` a member never counts as durable: after every restart it waits until all earlier
//!   leases have ended.
//! - `+client|setname` shows the connections as "leasehold" in `CLIENT LIST`.
//!
//! [`RedisMember::examine`] finds out which rights a user lacks; `leasehold doctor` prints the line that
//! adds them.
//!
//! Exclusion needs no other rights. `+client|id +client|kill` are worth adding if the server's users trust
//! each other. With them a client that connects again ends its previous connection, and the server drops
//! what it received there and did not execute. Without them such a request may take effect late. A late
//! release ends no later lease, because an owner that may have been released never asks again. A late
//! attempt may keep a free lock closed until its TTL is over.
//!
//! # Data that refuses a late holder
//!
//! [`FencedKey`] is a string that is written under a fence; [`FENCED_SCRIPT`] does the same for any command
//! of any client. The server need not grant the lock. In addition to the rights to the commands that it
//! writes with (`+set` and `+del` for a [`FencedKey`]), a user needs:
//!
//! ```text
//! ACL SETUSER data on >secret ~invoice:* ~leasehold:fenced:* +info +evalsha +script|load +get +set +del +pttl +pexpire
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "internal"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "our own tests use the rest"
    )
)]

mod admin;
mod connection;
mod fenced;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod store;
mod url;

/// Modules that are public for Leasehold's own tests alone.
macro_rules! internal {
    ($($name:ident),+) => {$(
        #[cfg(feature = "internal")]
        #[doc(hidden)]
        pub mod $name;
        #[cfg(not(feature = "internal"))]
        mod $name;
    )+};
}

internal! { codec, driver, resp, scripts }

pub use admin::{
    Examination, KeyCensus, MissingRight, Need, Persistence, RedisMember, ServerFacts, Transport,
};
pub use fenced::{FENCED_SCRIPT, FencedKey, FencedRedis, fence_record};
pub use leasehold_credentials::{Password, rustls};
pub use leasehold_quorum::TrustRules;
pub use store::RedisStore;
