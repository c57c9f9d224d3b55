//! What concerns PostgreSQL alone: the schema, logging in, transactions of the holder, late statements.

mod connections;
mod foreign;
mod holds;
mod late;
mod login;
mod pooler;
mod read_only;
mod schema;
mod shadowed;
mod support;
mod tables;
mod waiting;
