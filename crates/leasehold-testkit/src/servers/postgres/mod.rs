//! PostgreSQL servers, sessions of psql, and PgBouncer.

pub(super) mod pgbouncer;
pub(super) mod psql_session;
pub(super) mod server;
