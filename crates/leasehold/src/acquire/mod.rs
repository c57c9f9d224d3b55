//! One call of `acquire`: what it asks the store, and what ends it.

mod acquisition;
mod attempt;
mod backoff;
mod granted;
mod hearing;

pub(crate) use acquisition::{Acquisition, WaitPolicy};
