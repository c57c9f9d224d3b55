//! Distributed locks on Redis and Valkey: one server, or a Redlock quorum of several.
//!
//! [`RedisStore`] takes locks. [`RedisMember`] is one server for all other questions: its status, its locks, and
//! what operators change.
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
//! let locks = Client::new(RedisStore::new(urls)?);
//! # Ok(()) }
//! ```
//!
//! # Servers
//!
//! Redis from 6.2 on, and Valkey; a primary, not a replica, and not a node of a Redis Cluster. The first lock
//! fails on any other server, with the reason.
//!
//! # Waiting in turn
//!
//! Waiters are in a queue next to the lock, in the order of their tickets. When the lock is freed, the server notifies
//! the first one on the channel `leasehold:inbox:<client>`, to which each client subscribes on the connection of
//! its requests (RESP3). An entry counts while its client sends a heartbeat each second and its connection listens. Behind a
//! server or proxy that does not speak RESP3, waiters ask within seconds. A client enters the queue again after
//! `DEL leasehold:queue:{…}:…`. `docs/wire.md` of the repository specifies all keys, scripts and messages.
//!
//! # Members of a quorum
//!
//! A member keeps a card: the hash `leasehold:card`, one for each database, which the clients of its
//! set write and which never expires. It says which set the server belongs to, since when the server
//! has forgotten nothing, and when it first heard of its fellow members' lives. Every answer shows the
//! run of the server and the mark of the card as they were when the request was carried out: after a
//! restart, FLUSHALL, SWAPDB, or DEL of the card the next answer shows others. A card that makes no
//! sense is an error that names the field; `DEL leasehold:card` is the remedy.
//!
//! The client asks for the run of the server once per connection, because a restart ends every
//! connection. So give it the address of the server, or of a proxy that closes the client's
//! connection when the server closes its own (HAProxy and stunnel in TCP mode, most load balancers).
//! A proxy that speaks Redis and reconnects by itself hides a restart: a server that comes back with
//! the card from an old RDB file and without newer locks then keeps its vote, and a lock can be granted
//! twice. The client notices such a restart only when it asks the server how it is, as
//! `leasehold members` and `Client::health` do; it then reports the proxy and reconnects.
//!
//! A member that restarts counts at once if it keeps all that it acknowledges: `appendonly yes`,
//! `appendfsync always`, `no-appendfsync-on-rewrite no`. One that has a `maxmemory` and any
//! `maxmemory-policy` but `noeviction` may throw locks away, and is unfit.
//!
//! # Records
//!
//! The record of a lock is two keys beside it: the hash `leasehold:record:{…}:…` with the value, which
//! expires when its retention is over, and the string `leasehold:stamp:{…}:…` with the greatest fence
//! that opened or wrote it, which stands for 7 days after the last of these, as the lock's counter
//! does. A single server keeps records as it keeps its data: what it loses, it forgets.
//!
//! # Other libraries on the same keys
//!
//! An exclusive lock is a string under the lock's own name (behind `?prefix=`), written by
//! `SET NX PX` and deleted by comparison, as redis-py, redsync, node-redlock, rslock, aioredlock,
//! redlock-py and bsm/redislock do it: all of these and this library exclude each other. Where a
//! lock of another type is found (Redisson's is a hash), the error says so. Readers of this library,
//! and those who have one of its permits, keep out writers of all of them: `leasehold:shared` or
//! `leasehold:permits:<n>` is under the lock's name until the last of their leases ends.
//!
//! # Locks that an operator broke
//!
//! `leasehold:broken:<owner>` is then under the lock's name, with the time that was left of the lease, and
//! keeps out every other client, of other libraries too. Beside the lock, in the hash
//! `leasehold:broken:{…}:<lock>`, it is kept for 7 days who broke it, when and why. That the owner's lease
//! is broken stands in the record of the counter, below 0. The fence of an exclusive lease is there, too,
//! unless it is the first one above the instant that the owner names: then readers derive it.
//!
//! # What a user of the server must be allowed
//!
//! ```text
//! ACL SETUSER locks on >secret ~* +info +config|get +time +set +get +mget +del +exists +type +pttl +pexpire +pexpireat +zadd +zincrby +zscore +zmscore +zrange +zrangebyscore +zcount +zrank +zrem +zremrangebyscore +hget +hset +hdel +hgetall +scan +evalsha +script|load +subscribe +publish &leasehold:inbox:*
//! ```
//!
//! With `?prefix=app:` the keys may be narrowed from `~*` to `~app:* ~leasehold:*`. A database other
//! than 0 needs `+select`. Not every right is needed everywhere:
//!
//! - `+scan` and `+mget` are for listing locks alone, `+type` for naming the type of a foreign lock.
//! - `+hget`, `+hset` and `+hgetall` are for the member record of a quorum, and for saying who holds a
//!   lock. Without them the server serves as a store of its own; as a member of a quorum it does
//!   not count. With `+hdel` they are for permits, too, and for records.
//! - `+subscribe`, `+publish` and the channels `&leasehold:inbox:*` are for telling waiters that it
//!   is their turn. Without them they find out by asking, within seconds.
//! - Without `+config|get` a member never passes for durable: after every restart it waits until
//!   all leases of before are over.
//! - `+client|setname` shows the connections as "leasehold" in `CLIENT LIST`.
//!
//! [`RedisMember::examine`] finds out what a user lacks; `leasehold doctor` says the line that would be
//! enough.
//!
//! `+client|id +client|kill` are worth adding where the server's users trust each other: when the
//! answer to an attempt does not come and the connection is given up, they let the next connection
//! make sure that the server drops what it had received and not executed. Without them such an
//! attempt may take effect late; the quorum's repeated release or the TTL then ends it.
//!
//! # Data that refuses a late holder
//!
//! [`FencedKey`] is a string that is written under a fence; [`FENCED_SCRIPT`] does the same for any
//! command of any client. The server need not grant the lock. A user of it needs, beside the rights
//! to the commands it writes with (`+set` and `+del` for a [`FencedKey`]):
//!
//! ```text
//! ACL SETUSER data on >secret ~invoice:* ~leasehold:fenced:* +info +evalsha +script|load +get +set +del +pttl +pexpire
//! ```
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod driver;
mod examine;
mod fenced_redis;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod member;
#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod resp;
mod server;
#[doc(hidden)]
pub mod store;
mod url;

pub use examine::{
    Examination, KeyCensus, MissingRight, Need, Persistence, ServerFacts, Transport,
};
pub use fenced_redis::{FENCED_SCRIPT, FencedKey, FencedRedis, fence_record};
pub use leasehold_quorum::TrustRules;
pub use member::RedisMember;
pub use store::RedisStore;
