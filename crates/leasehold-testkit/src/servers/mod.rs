//! Real servers as child processes. Each has a free loopback port and a directory of its own. It ends with
//! its handle, and also when the test process is killed.
//!
//! If a server cannot be started, the test fails with a message that says what to install. No test is ever
//! skipped.

mod ca;
mod etcd;
mod http;
mod ports;
mod postgres;
mod prometheus;
mod redis;
mod server_process;
mod zookeeper;

pub use crate::until::{LIMIT, until};
pub use ca::TestCa;
pub use etcd::builder::EtcdBuilder;
pub use etcd::server::EtcdServer;
pub use etcd::set::EtcdSet;
pub use postgres::pgbouncer::PgBouncer;
pub use postgres::psql_session::PsqlSession;
pub use postgres::server::{PostgresBuilder, PostgresServer};
pub use prometheus::Prometheus;
pub use redis::builder::{AppendFsync, RedisBuilder};
pub use redis::redis_py::{RedisPy, WorkPlan};
pub use redis::resp::{Reply, RespConnection};
pub use redis::server::RedisServer;
pub use redis::server_clock::ServerClock;
pub use redis::set::RedisSet;
pub use zookeeper::connection::ZookeeperConnection;
pub use zookeeper::server::{Zookeeper, ZookeeperBuilder, java_program};
