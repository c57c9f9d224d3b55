//! One server outside of locks: its status, what it holds, its waiters, and what operators change.
//!
//! `docs/wire.md` specifies the keys that this reads.

mod break_record;
mod examine;
mod foreign;
mod inspect;
mod listing;
mod member;
mod server;

pub use examine::{
    Examination, KeyCensus, MissingRight, Need, Persistence, ServerFacts, Transport,
};
pub use member::RedisMember;
pub(crate) use server::{Server, Servers};

/// Reads replies as those to questions about locks, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_all(values: &[crate::resp::Value], client: leasehold::look::ClientId) {
    let now = leasehold::clock::WallTime::from_micros(1_763_637_400_000_000);
    let _ = inspect::read_together(values, leasehold::Mode::Shared, now);
    for value in values {
        let _ = inspect::read_client(client, value);
        let fields = inspect::texts(value).unwrap_or_default();
        let _ = break_record::read(&fields.into_iter().collect());
    }
    examine::read_all(values);
}
