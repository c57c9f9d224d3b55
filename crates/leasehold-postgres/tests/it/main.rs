//! What concerns PostgreSQL alone: the schema, logging in, transactions of the holder, late statements.

mod clocks;
mod connections;
mod crowd;
mod durability;
mod encoding;
mod foreign;
mod holds;
mod hostile;
mod hosts;
mod late;
mod locked;
mod login;
mod pooler;
mod read_only;
mod schema;
mod shadowed;
mod support;
mod tables;
mod waiting;
