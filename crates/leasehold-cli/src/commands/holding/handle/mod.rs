//! `leasehold acquire`, `renew` and `release`: a lock that is held through a handle, without a process.

mod acquire;
pub(crate) mod args;
pub(crate) mod handle_file;
pub(crate) mod handle_source;
mod release;
mod renew;
pub(crate) mod renewer;
mod report;

pub(crate) use acquire::acquire;
pub(crate) use release::release;
pub(crate) use renew::renew;
