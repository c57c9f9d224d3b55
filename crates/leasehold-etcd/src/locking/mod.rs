//! How locks are kept in etcd: names of keys, their values, who comes first, and the transactions. All of it decides
//! without I/O.

mod entry;
mod names;
mod order;
mod transactions;

pub(crate) use entry::{Entry, State};
pub(crate) use names::{Names, Position, Range, SharedLease, lease_id};
pub(crate) use order::{Decision, Standing, decide};
pub(crate) use transactions::{
    Attempt, Condition, Look, Step, one_key, proposal, range, read_pass_on,
};
