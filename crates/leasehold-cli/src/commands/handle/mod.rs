//! `leasehold acquire`, `renew` and `release`: a lock that is held through a handle, without a process.

mod acquire;
pub(crate) mod args;
mod handle_file;
mod handle_source;
mod release;
mod renew;
pub(crate) mod renewer;
mod report;
mod run;

pub(crate) use acquire::acquire;
pub(crate) use release::release;
pub(crate) use renew::renew;
pub(crate) use run::run_with_handle;
