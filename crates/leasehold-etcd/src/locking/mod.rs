//! How locks are kept in etcd: names of keys, their values, who comes first, and the transactions. All of it decides
//! without I/O.

mod entry;
#[cfg(test)]
mod interleavings;
mod names;
mod order;
mod snapshot;
mod transactions;

pub(crate) use entry::{Entry, EntryState};
pub(crate) use names::{Names, Position, Range, SharedLease, random_number};
pub(crate) use order::{Decision, Standing};
pub(crate) use snapshot::Snapshot;
pub(crate) use transactions::{Attempt, Condition, Step, one_key, range, read_pass_on};
