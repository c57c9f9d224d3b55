//! A client of ZooKeeper's protocol, as small as locks need it.

mod connection;
mod connector;
mod jute;
mod line;
mod message;
mod session;
mod session_term;
pub(crate) mod tls;

pub(crate) use connection::{Answer, Answered, Batch, Change, Connection, Pending};
pub(crate) use connector::{Greeting, Servers};
pub(crate) use message::{
    ANY, Access, Code, Lifetime, Op, Stat, created, nothing, stat, transaction,
};
pub(crate) use session::Session;
