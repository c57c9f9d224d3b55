//! One call of `acquire`: what it asks the store, and what ends it.

mod acquisition;
mod attempt;
mod backoff;
mod builder;
mod call_state;
mod options;

pub(crate) use acquisition::{Acquisition, WaitPolicy};
pub(crate) use builder::{lock_option, lock_options};
pub(crate) use options::LockOptions;
