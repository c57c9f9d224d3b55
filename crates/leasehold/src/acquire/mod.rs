//! One call of `acquire`: what it asks the store, and what ends it.

mod acquisition;
mod attempt;
mod backoff;
mod call_state;
mod granted;

pub(crate) use acquisition::{Acquisition, WaitPolicy};
