//! A client of ZooKeeper's protocol, as small as locks need it.

mod code;
mod connection;
mod connector;
mod driver;
mod jute;
mod leader_clock;
mod line;
mod message;
mod session;
mod session_term;
mod shared;
mod socket;

pub(crate) use code::{Code, Meaning};
pub(crate) use connection::{Answer, Answered, Batch, Change, Connection, Pending, committed};
pub(crate) use connector::{Greeting, Servers};
pub(crate) use leader_clock::LeaderClock;
pub(crate) use message::{
    ANY, Access, Effects, Lifetime, Op, Outcome, Stat, created, creation, nothing, stat,
    transaction,
};
pub(crate) use session::Session;

/// Reads bytes as each message of a server, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_all(bytes: &[u8]) {
    let message = || jute::Decoder::new(bytes);
    connector::read_all(bytes);
    let _ = created(&mut message());
    let _ = message::data(&mut message());
    let _ = message::children(&mut message());
    let _ = stat(&mut message());
    let _ = transaction(&mut message());
}
