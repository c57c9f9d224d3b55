//! Real servers as child processes. Each has a free loopback port and a directory of its own. It ends with
//! its handle, and also when the test process is killed.
//!
//! If a server cannot be started, the test fails with a message that says what to install. No test is ever
//! skipped.

mod ca;
mod etcd_builder;
mod etcd_server;
mod etcd_set;
mod pgbouncer;
mod ports;
mod postgres_server;
mod psql_session;
mod redis_builder;
mod redis_py;
mod redis_server;
mod redis_set;
mod resp;
mod server_clock;
mod server_process;
mod until;
mod zookeeper;
mod zookeeper_connection;

pub use ca::TestCa;
pub use etcd_builder::EtcdBuilder;
pub use etcd_server::EtcdServer;
pub use etcd_set::EtcdSet;
pub use pgbouncer::PgBouncer;
pub use postgres_server::{PostgresBuilder, PostgresServer};
pub use psql_session::PsqlSession;
pub use redis_builder::{AppendFsync, RedisBuilder};
pub use redis_py::{RedisPy, WorkPlan};
pub use redis_server::RedisServer;
pub use redis_set::RedisSet;
pub use resp::{Reply, RespConnection};
pub use server_clock::ServerClock;
pub use until::{LIMIT, until};
pub use zookeeper::{Zookeeper, ZookeeperBuilder, java_program};
pub use zookeeper_connection::ZookeeperConnection;
