//! A small Redis in memory that runs real Lua, under a clock that the caller sets.
//!
//! It has the commands that locks need, and answers as Redis 7.0 does. A differential test compares the
//! two. It knows nothing about locks.
//!
//! It lacks all databases except 0, streams, sets, blocking commands, `WATCH`, and everything about disks
//! and replicas except what `INFO` reports. Scripts have no `cjson`, `cmsgpack`, `struct`, `bit`,
//! `math.random` and `redis.setresp`. A script that never ends does not end here, either.

mod clients;
mod commands;
mod core;
mod dispatch;
mod failure;
mod glob;
mod identity;
mod keyspace;
mod lua;
mod number;
mod reply;
mod resp;
mod server;
mod sorted_set;
mod words;

pub use self::clients::ConnectionId;
pub use self::reply::Reply;
pub use self::server::FakeRedis;
